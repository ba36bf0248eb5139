/* SPDX-License-Identifier: MIT
 * One sample's labels, from every source that is asked at a sample, as one canonical
 * run of bytes. (Rules belong to the stack: publish/sample_labels.h merges them when written.)
 *
 * Precedence, lowest to highest: process, thread, rules, custom-labels, OpenTelemetry, API. At most
 * LABELS_MAX; when there are more, the lowest give way. Sorted by key; the same labels always give
 * the same bytes.
 * Threads: called by the thread that is sampled, inside the profiler. Signals: a handler that
 * changes a label meanwhile makes it start again. Allocation: none.
 */
#ifndef LABELPROF_LABELS_GATHER_H
#define LABELPROF_LABELS_GATHER_H

#include <stddef.h>

#include "labels/current.h"

/* One label as stored in a label set: this head, the key, the value; packed back to back. */
struct label_head {
    uint8_t kind;        /* enum label_kind */
    uint8_t is_variable; /* from API, custom-labels or OpenTelemetry: "(other)" may replace it */
    uint8_t key_bytes;
    uint8_t reserved;
    uint16_t value_bytes; /* text, or unit of a number */
    uint16_t reserved_2;
    int64_t number; /* LABEL_NUMBER: the value; LABEL_SYMBOL: the frame */
};

enum {
    LABEL_BYTES_MAX = sizeof(struct label_head) + LABEL_KEY_BYTES + LABEL_VALUE_BYTES,
    LABEL_SET_BYTES_MAX = LABELS_MAX * LABEL_BYTES_MAX
};

/* Parses LABELPROF_LABELS once, at start. */
bool gather_open(void);

/* False: LABELPROF_LABEL_KEYS leaves string labels of this key out, whatever their source. */
bool gather_is_wanted(const char *key, size_t key_bytes);

/* Writes the calling thread's labels to `out` (LABEL_SET_BYTES_MAX) and returns the length. */
size_t gather_labels(unsigned char *out);

#endif
