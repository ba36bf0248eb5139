/* SPDX-License-Identifier: MIT
 * The gzip'ed output of one profile and what it is written from: scratch, string table, first
 * error.
 *
 * Place: profile_writer → messages → stream → gzip → sink.
 * Memory: its scratch. Threads: one at a time. Signals: safe where the sink is.
 * Failure: the first error sticks in `error`; nothing is written after it.
 */
#ifndef LABELPROF_ENCODER_STREAM_H
#define LABELPROF_ENCODER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/profile_writer.h"
#include "encoder/scratch.h"
#include "encoder/strings.h"

struct stream {
    int error; /* 0, or the first as -errno */
    struct gzip *gzip;
    struct scratch scratch;
    struct strings strings;
};

/* Writes the empty string, which must be the first. False: no memory; stream_end is due all the
 * same. */
bool stream_begin(struct stream *stream, struct profile_sink *sink);
/* Finishes the gzip data unless there was an error, and gives all scratch pieces back. */
int stream_end(struct stream *stream);

void stream_fail(struct stream *stream, int error);
bool stream_reserve(struct stream *stream, struct scratch_array *array, size_t n_bytes);
void stream_put(struct stream *stream, const void *bytes, size_t n_bytes);

/* A text's index in the string table, which it enters when it is first seen. */
int64_t stream_text(struct stream *stream, struct profile_text text);
int64_t stream_c_text(struct stream *stream, const char *text); /* NULL: "" */

/* Tag and length in front of a field that is a message or a string; at most PREFIX_BYTES. */
enum { PREFIX_BYTES = 11 };
size_t stream_prefix(uint8_t *to, unsigned field, size_t n_bytes);

#endif
