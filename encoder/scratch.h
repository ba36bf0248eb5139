/* SPDX-License-Identifier: MIT
 * Memory for one job: taken bit by bit, given back all at once. Anonymous mappings, no malloc.
 *
 * Two shapes: pieces (scratch_take) that live until the end, and arrays (scratch_array) that grow
 * by moving. Threads: one at a time. Signals: safe, as system calls are.
 * Failure: NULL or false; what was taken before stays valid.
 */
#ifndef LABELPROF_ENCODER_SCRATCH_H
#define LABELPROF_ENCODER_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: valid and empty. */
struct scratch {
    struct scratch_chunk *chunks; /* the newest first */
    size_t total_bytes, peak_bytes;
};

struct scratch_array {
    void *start;
    size_t n_bytes_mapped;
};

/* Zeroed, aligned to 16. NULL: no memory. */
void *scratch_take(struct scratch *scratch, size_t n_bytes);
/* Room for n_bytes, what was there kept, what is new zeroed. Grows at least twofold. */
bool scratch_reserve(struct scratch *scratch, struct scratch_array *array, size_t n_bytes);
void scratch_drop(struct scratch *scratch, struct scratch_array *array);
/* Every piece. Arrays are their owners' to drop. */
void scratch_end(struct scratch *scratch);

#endif
