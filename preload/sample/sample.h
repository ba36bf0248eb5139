/* SPDX-License-Identifier: MIT
 * One sampled object, from the draw that chose it to its end.
 *
 * Place: interpose → sample → (unwind + labels) → record → publish.
 * Threads: acts for the calling thread. Signals: inside a handler whose thread is in the profiler
 * a sample is refused and counted, an end returns false and the caller defers the free.
 * Allocation: none on the program's heap. errno is never touched. Failure: the sample is refused.
 */
#ifndef LABELPROF_SAMPLE_SAMPLE_H
#define LABELPROF_SAMPLE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/thread.h"
#include "record/filter.h"
#include "unwind/walk.h"

struct special;

/* The fast path of every allocating door: true if this object is not the one. An object of size 0
 * counts as one byte here. A thread that has never drawn has 0 remaining and is sent the slow way. */
static inline bool sample_passes(size_t size)
{
    uint64_t rest;
    if (unlikely(__builtin_sub_overflow(thread_self.remaining, (uint64_t)size + (size == 0), &rest)))
        return false;
    thread_self.remaining = rest;
    return true;
}

/* What sample_passes could not let through: seeds a new thread and asks again, or draws the next
 * gap. True: sample this object, with the interval sample_bytes << *ret_lg_factor. */
bool sample_due(size_t size, uint8_t *ret_lg_factor);

/* No sample for this thread, ever: profiling is off. */
void sample_never(void);

/* The thread draws anew, from a new seed, at its next allocation. */
void sample_forget_draw(void);

/* If a sampled block should be taken with PLACED_ALIGNMENT: not when the interval is so small that
 * the heap would grow by more than about one part in a hundred. */
bool sample_wants_placed(void);

struct sample_object {
    void *p;
    size_t size_bytes;
    uint8_t lg_factor;
    struct unwind_regs caller;
};

/* The object is about to be returned to the program: unwinds, labels, records it. */
void sample_begin(const struct sample_object *object);

/* p, for which the filter says "maybe", is about to be released. False: we are inside the profiler;
 * release p later (thread_self.deferred_frees). */
bool sample_end(void *p);

/* For realloc: take the sample of p away before the real call; NULL: p has none. Then give it back
 * if the call failed, or end it, together with the birth of `born` unless NULL. */
struct special *sample_detach(void *p);
bool sample_is_of(const struct special *special, const void *p); /* still: see slow.c, resize_end */
void sample_reattach(struct special *special);
void sample_replace(struct special *ended, const struct sample_object *born);

/* Frames at the leaf inside [start, limit) are the allocator's own (operator new calling malloc) and
 * are left out. */
void sample_leave_out_at_leaf(uintptr_t start, uintptr_t limit);

bool sample_open(void);

#endif
