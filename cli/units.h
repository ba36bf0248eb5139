/* SPDX-License-Identifier: MIT
 * Quantities for people: 1536 bytes are "1.50KiB", 2e6 nanoseconds "2.00ms".
 *
 * Pure. Threads: any. Failure: none.
 */
#ifndef LABELPROF_CLI_UNITS_H
#define LABELPROF_CLI_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { UNITS_MAX = 48 }; /* bytes a formatted quantity takes, its NUL included */

/* At most four digits, for a column of a table. Units that are not known follow as they are. */
void units_format(char text[UNITS_MAX], int64_t value, const char *unit);

/* Every digit, for a value that is a name: "4096 bytes". Longer units are cut. */
void units_format_exact(char text[UNITS_MAX], int64_t value, const char *unit);

/* "12.34%"; "-" when there is no total. */
void units_format_percent(char text[UNITS_MAX], int64_t value, int64_t total);

/* 100 × value / total; 0 when there is no total. */
double units_percent(int64_t value, int64_t total);

#endif
