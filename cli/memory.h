/* SPDX-License-Identifier: MIT
 * Allocation that does not fail: the command ends with a message when memory is gone.
 *
 * Threads: any. Failure: message on stderr and exit with EXIT_FAULT.
 */
#ifndef LABELPROF_CLI_MEMORY_H
#define LABELPROF_CLI_MEMORY_H

#include <stddef.h>

void *xcalloc(size_t n_items, size_t item_bytes); /* zeroed */
char *xstrdup(const char *text);
char *xformat(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Room for one more item than n_items: the array, doubled when n_items is a power of two. */
void *xgrow(void *items, size_t n_items, size_t item_bytes);

#endif
