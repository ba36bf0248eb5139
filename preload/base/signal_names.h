/* SPDX-License-Identifier: MIT
 * Signals by name, as people write them. Pure.
 */
#ifndef LABELPROF_BASE_SIGNAL_NAMES_H
#define LABELPROF_BASE_SIGNAL_NAMES_H

#include <stddef.h>

/* The number of "TERM", "SIGTERM", "RTMIN+3", "RTMAX-1" or "15"; 0: not a signal. */
int signal_number(const char *name, size_t n_bytes);

#endif
