/* SPDX-License-Identifier: MIT
 * Text without libc's stdio and locale: building a bounded line, numbers, UTF-8.
 * Threads and signals: pure functions, safe everywhere. Failure: text that does not fit is cut.
 */
#ifndef LABELPROF_BASE_TEXT_H
#define LABELPROF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line under construction in the caller's buffer; always NUL-terminated. */
struct line {
    char *bytes;
    size_t n_bytes, capacity;
    bool is_cut;
};

struct line line_in(char *buffer, size_t capacity);
void line_add(struct line *line, const char *text);
void line_add_bytes(struct line *line, const char *bytes, size_t n_bytes);
void line_add_number(struct line *line, uint64_t number);
void line_add_hex(struct line *line, uint64_t number);

/* Digits only, the whole text; false on anything else or overflow. */
bool text_to_number(const char *text, size_t n_bytes, uint64_t *ret);

/* The longest prefix of at most `max` bytes that does not end inside a UTF-8 character. */
size_t text_cut_at_character(const char *bytes, size_t n_bytes, size_t max);

/* If `list` (comma-separated) has the item. */
bool text_list_has(const char *list, const char *item, size_t n_bytes);

/* One line stays one line, and a terminal takes no orders from it. */
void text_hide_controls(char *text);

uint64_t hash_bytes(const void *bytes, size_t n_bytes);

#endif
