/* SPDX-License-Identifier: MIT
 * pprof's messages, one at a time, into the stream. The only file of the write side that knows
 * protobuf-c.
 *
 * Texts are indexes of the stream's string table, ids the file's ids.
 * Memory: a few KiB of the stream's scratch. No malloc. Threads: one at a time.
 * Failure: kept by the stream.
 */
#ifndef LABELPROF_ENCODER_MESSAGES_H
#define LABELPROF_ENCODER_MESSAGES_H

#include <stddef.h>
#include <stdint.h>
#include "encoder/stream.h"

/* All zero but stream: valid. The arrays keep their size from one message to the next. */
struct messages {
    struct stream *stream;
    struct scratch_array packed; /* one message on its way out */
    struct scratch_array labels, label_pointers;
    size_t n_labels; /* of the sample under construction */
};

enum { MAX_VALUE_TYPES = 16 };
void message_head(struct messages *messages, const struct profile_head *head);
void message_comment(struct messages *messages, int64_t text);
void message_mapping(struct messages *messages, uint64_t id, const struct profile_mapping *mapping,
                     int64_t build_id);

/* The labels first, then the sample that has them. */
void message_add_text_label(struct messages *messages, int64_t key, int64_t text);
void message_add_number_label(struct messages *messages, int64_t key, int64_t number, int64_t unit);
void message_sample(struct messages *messages, const uint64_t *locations, size_t n_locations,
                    const int64_t *values, size_t n_values);

void message_function(struct messages *messages, uint64_t id, int64_t name);
void message_location(struct messages *messages, uint64_t id, uint64_t mapping, uint64_t address,
                      uint64_t function);
void messages_end(struct messages *messages);

#endif
