/* SPDX-License-Identifier: MIT
 * Blocks for calls that come before the allocator behind us is known (dlsym itself allocates).
 *
 * Blocks are zero, at multiples of 16, one to a page at the place where the fast path of free sets
 * them apart (record/filter.h: EARLY_PLACE), and never reused. Threads: lock-free. Failure: NULL when the arena is spent.
 */
#ifndef LABELPROF_INTERPOSE_EARLY_H
#define LABELPROF_INTERPOSE_EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EARLY_ARENA_BYTES = 1024 * 1024 }; /* of .bss: only pages used are there */
extern unsigned char early_arena[EARLY_ARENA_BYTES] __attribute__((visibility("hidden")));

void *early_alloc(size_t bytes);
size_t early_size(const void *block);

static inline bool early_owns(const void *p)
{
    return (uintptr_t)p - (uintptr_t)early_arena < EARLY_ARENA_BYTES;
}

#endif
