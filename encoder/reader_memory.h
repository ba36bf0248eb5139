/* SPDX-License-Identifier: MIT
 * Memory of one profile that was read: many pieces, given back at once. malloc inside.
 * Place: the reader only. Threads: one at a time. Failure: NULL, also beyond ARENA_MAX_BYTES, so
 * that no input, however crafted, takes the machine's memory.
 */
#ifndef LABELPROF_ENCODER_READER_MEMORY_H
#define LABELPROF_ENCODER_READER_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define ARENA_MAX_BYTES (UINT64_C(4) << 30)

/* All zero: valid and empty. */
struct arena {
    struct arena_chunk *chunks;
    uint64_t total_bytes;
};

void *arena_take(struct arena *arena, size_t n_items, size_t item_bytes); /* not zeroed */
void arena_end(struct arena *arena);

#endif
