/* SPDX-License-Identifier: MIT */
#include "interpose/early.h"

#include "base/attributes.h"
#include "record/filter.h"

unsigned char early_arena[EARLY_ARENA_BYTES] __attribute__((aligned(PLACED_ALIGNMENT)));
static size_t used_bytes; /* atomic */

/* The size of a block stands in the 16 bytes before it, at the end of the block before. */
enum { HEADER_BYTES = 16 };

static size_t *header_of(const void *block)
{
    return (size_t *)((uintptr_t)block - HEADER_BYTES);
}

void *early_alloc(size_t bytes)
{
    if (bytes > EARLY_ARENA_BYTES)
        return NULL;
    size_t step = round_up(bytes + HEADER_BYTES, PLACED_ALIGNMENT);
    size_t from = __atomic_fetch_add(&used_bytes, step, __ATOMIC_RELAXED);
    if (from + PLACED_ALIGNMENT + step > EARLY_ARENA_BYTES)
        return NULL;
    void *block = early_arena + PLACED_ALIGNMENT + from;
    *header_of(block) = bytes;
    return block;
}

size_t early_size(const void *block)
{
    return *header_of(block);
}
