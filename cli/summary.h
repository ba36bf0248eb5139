/* SPDX-License-Identifier: MIT
 * What the header of a table says: which files, of which program, what was measured, and what a
 * reader must know before believing the figures.
 *
 * Threads: one. Failure: a message on stderr and NULL.
 */
#ifndef LABELPROF_CLI_SUMMARY_H
#define LABELPROF_CLI_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/aggregate.h"
#include "encoder/reader.h"

struct summary {
    const char *command; /* for messages */
    const char *const *paths;
    size_t n_paths;
    size_t n_read; /* paths opened so far */
    char *type;    /* NULL: the first file's default */
    char *unit;
    struct aggregate programs, notes; /* only their row names count, in order of appearance */
    uint64_t n_samples;
    int64_t min_period_bytes, max_period_bytes; /* 0: unknown */
};

/* The next file, whose value of the summary's type is at *ret_value_index in each sample. The
 * caller frees it. */
struct profile_data *summary_open_next(struct summary *summary, size_t *ret_value_index);

void summary_free(struct summary *summary);

#endif
