/* SPDX-License-Identifier: MIT
 * Samples in, pprof out: a stream of protobuf messages into gzip into a sink.
 *
 * Place: the end of the arrow, snapshot → encode → write. Knows nothing of the program the
 * samples came from; shared by the library and the command.
 * Memory: its own anonymous mappings, given back by profile_end; grows with distinct addresses
 * and label strings, never with the number of samples. No malloc, no stdio, no locale.
 * Threads: one writer per thread at a time. Signals: safe where its sink is.
 * Failure: the first error sticks and is returned by profile_end (-errno); calls after it do
 * nothing.
 */
#ifndef LABELPROF_ENCODER_PROFILE_WRITER_H
#define LABELPROF_ENCODER_PROFILE_WRITER_H

#include <stddef.h>
#include <stdint.h>

struct profile_writer;

/* Where the gzip bytes go: 0, or -errno. Never asked to write again after an error. */
struct profile_sink {
    int (*write)(struct profile_sink *sink, const void *bytes, size_t n_bytes);
};

struct profile_text {
    const char *bytes; /* not NUL-terminated; anything: written as valid UTF-8, bad bytes as \xNN */
    size_t n_bytes;
};

struct profile_value_type {
    const char *type, *unit;
};

struct profile_head {
    const struct profile_value_type *value_types;
    size_t n_value_types;
    const char *default_type; /* NULL: none */
    struct profile_value_type period_type;
    int64_t period;
    int64_t time_nanos, duration_nanos;
};

/* Called once per mapping, in id order: the first call describes mapping 1, the main program. */
struct profile_mapping {
    uint64_t start, limit, offset;
    const char *file;
    const uint8_t *build_id;
    size_t build_id_bytes;
};

enum profile_label_kind {
    PROFILE_LABEL_TEXT,
    PROFILE_LABEL_NUMBER,
    PROFILE_LABEL_SYMBOL, /* a text label whose value is the name of the function at `frame` */
};

struct profile_label {
    enum profile_label_kind kind;
    struct profile_text key;
    struct profile_text text; /* TEXT: the value; NUMBER: the unit, may be empty */
    int64_t number;
    uint64_t frame;
};

/* A frame: address in the low 48 bits, mapping id in the high 16 (0: none). Address 1 in mapping
 * 0 stands for "[truncated]", address 2 for "[other stacks]": written as functions of that name
 * without an address. */
enum { PROFILE_FRAME_ADDRESS_BITS = 48 };

/* NULL: no memory. The sink and what `head` points to must outlive the writer. */
struct profile_writer *profile_begin(struct profile_sink *sink, const struct profile_head *head);
void profile_add_mapping(struct profile_writer *writer, const struct profile_mapping *mapping);
void profile_add_comment(struct profile_writer *writer, const char *text, size_t n_bytes);
/* frames leaf first; values as many as head->n_value_types. */
void profile_add_sample(struct profile_writer *writer, const uint64_t *frames, size_t n_frames,
                        const int64_t *values, const struct profile_label *labels, size_t n_labels);
/* Most bytes the writer has had mapped at a time; for bench and tests. */
size_t profile_peak_bytes(const struct profile_writer *writer);
/* Names the functions, finishes the stream, frees the writer. 0, or the first error as -errno. */
int profile_end(struct profile_writer *writer);

#endif
