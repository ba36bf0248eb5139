/* SPDX-License-Identifier: MIT
 * Strings of a profile made safe for where they go: a terminal, a CSV field, a JSON string.
 *
 * A profile may come from anywhere: its names may hold escape sequences, newlines, and bytes that
 * are not UTF-8. Bytes that are not UTF-8 become \xNN everywhere, as the library writes them.
 * Threads: one. Failure: none of its own; errors of the stream stay in the stream.
 */
#ifndef LABELPROF_CLI_TEXT_H
#define LABELPROF_CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_WHOLE = 1 << 30 }; /* a width nothing reaches */

/* One printable line: control characters as \xNN; beyond max_columns cut, ending in "...". */
void text_print(FILE *out, const char *text, int max_columns);

void text_print_csv(FILE *out, const char *text);  /* quoted where RFC 4180 asks for it */
void text_print_json(FILE *out, const char *text); /* with its quotes */

/* The character at *text, which moves on past it; -1 and one byte on if that is not UTF-8. */
int32_t text_next(const char **text);

/* Columns a terminal gives the character: 0 (combining), 1, or 2 (East Asian wide). */
int text_columns(int32_t character);

#endif
