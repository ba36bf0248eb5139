/* SPDX-License-Identifier: MIT
 * A file or standard input as plain bytes: read whole, gunzip'ed if it is gzip.
 * Place: the reader only; malloc inside. Threads: safe. Failure: -errno and one line of text;
 * *ret_bytes untouched.
 */
#ifndef LABELPROF_ENCODER_READER_INPUT_H
#define LABELPROF_ENCODER_READER_INPUT_H

#include <stddef.h>
#include <stdint.h>

/* 100,000 samples take about 10 MB. */
enum { INPUT_MAX_BYTES = 256 << 20 };

struct input {
    uint8_t *bytes; /* the caller frees */
    size_t n_bytes;
};

/* "<name>: <text>" into error[PROFILE_ERROR_BYTES]; returns `code`. */
__attribute__((format(printf, 4, 5))) int input_error(char *error, int code, const char *name,
                                                      const char *format, ...);

int input_read(const char *path, char *error, struct input *ret_input);
/* If the bytes are gzip, inflates them; else copies them. */
int input_inflate(const char *name, const void *bytes, size_t n_bytes, char *error,
                  struct input *ret_input);

#endif
