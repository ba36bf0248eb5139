/* SPDX-License-Identifier: MIT
 * writer_otel with static room: no thread's dtv tells where it is. */
#include "writer_otel.so.c"
