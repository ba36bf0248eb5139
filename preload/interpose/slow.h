/* SPDX-License-Identifier: MIT
 * The slow half of the allocating doors: this call may be the sampled one.
 *
 * Place: interpose → sample. Each is entered by a tail call from its door, so that its own frame
 * (slow.c is built with frame pointers) holds the registers of the door's caller.
 * Threads, signals: as the door itself. Failure: whatever the allocator behind us answers.
 */
#ifndef LABELPROF_INTERPOSE_SLOW_H
#define LABELPROF_INTERPOSE_SLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interpose/early.h"
#include "record/filter.h"

void *slow_malloc(size_t size);
void *slow_calloc(size_t n, size_t size);
void *slow_realloc(void *p, size_t size);
/* One for each way to ask for an alignment: `allocate` is the door's own next function; `asked` the
 * size to record, `size` the size to allocate. */
void *slow_aligned(size_t alignment, size_t size, size_t asked, void *(*allocate)(size_t, size_t));
int slow_posix_memalign(void **ret, size_t alignment, size_t size, size_t asked);
void *slow_paged(size_t size, void *(*allocate)(size_t)); /* valloc, pvalloc */
/* Any operator new of an allocator that brings its own; `aligned` (may be NULL) is its counterpart
 * that takes an alignment as the second argument. */
typedef void *new_function(size_t size, uintptr_t a, uintptr_t b);
void *slow_new(size_t size, uintptr_t a, uintptr_t b, new_function *plain, new_function *aligned);
void *slow_mallocx(size_t size, int flags);
void *slow_rallocx(void *p, size_t size, int flags);
size_t slow_xallocx(void *p, size_t size, size_t extra, int flags);

/* The fast path of every releasing door: p has no sample and is not of the early arena. */
static inline bool slow_is_needless(const void *p)
{
    return filter_is_ordinary(p) || (likely(!filter_may_hold(p)) && likely(!early_owns(p)));
}

/* Ends the sample of p, if it has one. False: p was dealt with (deferred, or from
 * the early arena) and must not be released now. */
bool slow_release(void *p);
void slow_free(void *p);
/* Releases what handlers deferred; at depth 0. */
void slow_free_deferred(void);

#endif
