/* SPDX-License-Identifier: MIT
 * "Surely not sampled": what free asks before anything else. The truth is the exact table
 * (specials.h); the filter only excludes.
 *
 * Three tests, cheapest first:
 *   1. placed samples come from memalign(PLACED_ALIGNMENT): an ordinary pointer fails one AND;
 *   2. samples that had to stay where the allocator put them (results of realloc, large calloc, small
 *      intervals) are counted in n_in_place; while it is 0 nothing else is asked;
 *   3. a bitmap of 64 Ki bits (8 KiB, fits L1) over hashed addresses of all samples.
 *
 * Threads: a bit is set, under its stripe's lock, before the door returns the pointer; whoever
 * frees it got it through some happens-before of the program's, so relaxed loads suffice. All bits
 * of one bitmap word belong to one stripe, so a word changes under one lock only.
 */
#ifndef LABELPROF_RECORD_FILTER_H
#define LABELPROF_RECORD_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

/* 1024 excludes 63 of 64 of glibc's pointers and costs about 1 KB of heap a live sample. */
enum { PLACED_ALIGNMENT = 1024, FILTER_LG_BITS = 16, STRIPES = 64 };

struct filter {
    uint32_t n_in_place;
    uint64_t bits[(1u << FILTER_LG_BITS) / 64];
};
extern struct filter filter __attribute__((visibility("hidden")));

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
    return likely(((uintptr_t)p & (PLACED_ALIGNMENT - 1)) != 0) &&
           likely(__atomic_load_n(&filter.n_in_place, __ATOMIC_RELAXED) == 0);
}

static inline bool filter_may_hold(const void *p)
{
    uint32_t hash = filter_hash(p);
    return __atomic_load_n(&filter.bits[hash >> 6], __ATOMIC_RELAXED) >> (hash & 63) & 1;
}

#endif
