/* SPDX-License-Identifier: MIT
 * Values of samples summed by name: of a function, or of a label.
 *
 * flat: what the samples whose leaf (or label) has the name hold. cum: what the samples hold that
 * have the name anywhere on their stack, each sample once, however deep it recurses.
 * For every function flat ≤ cum; the sum of flat over all rows = selected ≤ total.
 * Keeps copies: a profile may be freed once it was added. Sums stop at the ends of int64_t.
 * Threads: one. Failure: none (memory.h).
 */
#ifndef LABELPROF_CLI_AGGREGATE_H
#define LABELPROF_CLI_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/frame_names.h"
#include "encoder/reader.h"

#define AGGREGATE_NONE "(none)" /* the name of samples without the label */

struct aggregate_row {
    char *name;
    int64_t flat, cum;
    uint64_t last_sample; /* that was counted in cum, from 1 */
};

struct aggregate {
    struct aggregate_row *rows;
    size_t n_rows;
    uint32_t *slots; /* open addressing: row index + 1, 0 for a free one */
    size_t n_slots;  /* a power of two, at least 2 × n_rows; 0 before the first row */
    uint64_t n_samples;
    int64_t total;    /* of all samples */
    int64_t selected; /* of those focus and ignore left */
};

/* The row of that name, made at need. */
size_t aggregate_row_of(struct aggregate *aggregate, const char *name);

void aggregate_functions(struct aggregate *aggregate, const struct profile_data *profile,
                         size_t value_index, struct frame_names *names);

/* By the values of the label; samples without it under AGGREGATE_NONE. False if no sample of the
 * profile has such a label. */
bool aggregate_label(struct aggregate *aggregate, const struct profile_data *profile,
                     size_t value_index, struct frame_names *names, const char *key);

/* One aggregate per label key: the rows of `keys` are the keys, `values` runs parallel to them. */
struct aggregate_tags {
    struct aggregate keys;
    struct aggregate *values;
};
void aggregate_all_labels(struct aggregate_tags *tags, const struct profile_data *profile,
                          size_t value_index);

/* Largest flat (or cum) first, negative ones by their size, then by name. No rows may be added
 * after this. */
void aggregate_sort(struct aggregate *aggregate, bool by_cum);

void aggregate_free(struct aggregate *aggregate);

int64_t saturating_add(int64_t a, int64_t b);

#endif
