/* SPDX-License-Identifier: MIT
 * Valid UTF-8 out of any bytes. Pure functions. */
#ifndef LABELPROF_ENCODER_UTF8_H
#define LABELPROF_ENCODER_UTF8_H

#include <stddef.h>

/* How many bytes from the start are valid UTF-8 and not NUL. */
size_t utf8_valid_prefix(const char *bytes, size_t n_bytes);

enum { UTF8_MAX_GROWTH = 4 }; /* one bad byte becomes the four characters \xNN */
/* Copies, each bad byte as \xNN. Needs UTF8_MAX_GROWTH * n_bytes at `to`; returns
 * the bytes written. */
size_t utf8_clean(char *to, const char *bytes, size_t n_bytes);

#endif
