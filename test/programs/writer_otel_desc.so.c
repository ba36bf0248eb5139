/* SPDX-License-Identifier: MIT
 * writer_otel reached through a TLS descriptor, as the specification recommends. */
#include "writer_otel.so.c"
