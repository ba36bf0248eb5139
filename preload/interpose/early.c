/* SPDX-License-Identifier: MIT */
#include "interpose/early.h"

#include "base/attributes.h"
#include "record/filter.h"

unsigned char early_arena[EARLY_ARENA_BYTES] __attribute__((aligned(PAGE_BYTES)));
static size_t used_bytes; /* atomic */

/* The size of a block stands in the 16 bytes before it. */
enum { HEADER_BYTES = 16, FIRST_BYTES = EARLY_PLACE * 16 };

static size_t *header_of(const void *block)
{
    return (size_t *)((uintptr_t)block - HEADER_BYTES);
}

void *early_alloc(size_t bytes)
{
    if (bytes > EARLY_ARENA_BYTES)
        return NULL;
    size_t step = round_up(bytes + HEADER_BYTES, PAGE_BYTES);
    size_t from = FIRST_BYTES + __atomic_fetch_add(&used_bytes, step, __ATOMIC_RELAXED);
    if (from + step > EARLY_ARENA_BYTES)
        return NULL;
    void *block = early_arena + from;
    *header_of(block) = bytes;
    __atomic_fetch_add(&filter.n_early, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&filter.n_at[EARLY_PLACE], 1, __ATOMIC_RELAXED);
    return block;
}

size_t early_size(const void *block)
{
    return *header_of(block);
}
