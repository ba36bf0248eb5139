/* SPDX-License-Identifier: MIT
 * "Surely not sampled": what free asks before anything else. The truth is the exact table
 * (specials.h); the filter only excludes.
 *
 *   1. How many live samples lie at the same place within a page as p: a table of 256 counts, one
 *      load. Samples are taken with memalign(PLACED_ALIGNMENT) where that is cheap, so nearly all lie
 *      at one of four places, and 98 % of pointers end here. Without a live sample all do: a block
 *      that was a sample once, and is handed out again, costs nothing more.
 *   2. A bitmap of 64 Ki bits (8 KiB, fits L1) over hashed addresses of all samples.
 *
 * Threads: counts and bits are set under the sample's stripe lock before the door returns the
 * pointer; whoever frees it got it through some happens-before of the program's, so relaxed loads
 * suffice. All bits of one bitmap word belong to one stripe, so a word changes under one lock only;
 * counts are changed atomically.
 */
#ifndef LABELPROF_RECORD_FILTER_H
#define LABELPROF_RECORD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

/* 1024 costs about 1 KB of heap a live sample. */
enum { PLACED_ALIGNMENT = 1024, FILTER_LG_BITS = 16, STRIPES = 64 };

/* Places in a page: addresses of blocks are multiples of 16. EARLY_PLACE is where the early arena
 * (interpose/early.h) puts its blocks, so that they too are told apart by the first test. */
enum { FILTER_PLACES = PAGE_BYTES / 16, EARLY_PLACE = FILTER_PLACES - 1 };

struct filter {
    uint32_t n_at[FILTER_PLACES]; /* atomic */
    uint64_t bits[(1u << FILTER_LG_BITS) / 64];
    uint32_t n_early; /* blocks of the early arena, counted in n_at for good; atomic */
    bool has_inherited;
    uint64_t inherited[(1u << FILTER_LG_BITS) / 64]; /* the parents' bits when they forked */
};
extern struct filter filter __attribute__((visibility("hidden")));

static inline unsigned filter_place(const void *p)
{
    return (uintptr_t)p >> 4 & (FILTER_PLACES - 1);
}

static inline uint32_t filter_hash(const void *p)
{
    return (uint32_t)(((uint64_t)p >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - FILTER_LG_BITS));
}

/* The 16 words of one stripe lie together: hash = stripe (6 bits) | word in it (4) | bit (6). */
static inline unsigned filter_stripe(uint32_t hash)
{
    return hash >> (FILTER_LG_BITS - 6);
}

static inline bool filter_is_ordinary(const void *p)
{
    return likely(__atomic_load_n(&filter.n_at[filter_place(p)], __ATOMIC_RELAXED) == 0);
}

static inline bool filter_may_hold(const void *p)
{
    uint32_t hash = filter_hash(p);
    return __atomic_load_n(&filter.bits[hash >> 6], __ATOMIC_RELAXED) >> (hash & 63) & 1;
}

/* A block that was placed lies where its size would not put it: no size hint for it must reach the
 * allocator. This process's samples are found in the bitmap; this tells those of its parents, which
 * a child of fork has forgotten otherwise, and blocks that were placed and then refused as samples. */
static inline bool filter_is_inherited(const void *p)
{
    if (likely(!__atomic_load_n(&filter.has_inherited, __ATOMIC_RELAXED)))
        return false;
    uint32_t hash = filter_hash(p);
    return __atomic_load_n(&filter.inherited[hash >> 6], __ATOMIC_RELAXED) >> (hash & 63) & 1;
}

/* p was placed, and is no sample after all. For good: another block there only loses its hint. */
static inline void filter_inherit(const void *p)
{
    uint32_t hash = filter_hash(p);
    __atomic_fetch_or(&filter.inherited[hash >> 6], UINT64_C(1) << (hash & 63), __ATOMIC_RELAXED);
    __atomic_store_n(&filter.has_inherited, true, __ATOMIC_RELAXED);
}

#endif
