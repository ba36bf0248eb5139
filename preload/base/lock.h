/* SPDX-License-Identifier: MIT
 * A futex mutex: four bytes, zero is unlocked, so zeroed memory holds valid locks.
 *
 * Threads: private to the process. Signals: never taken by a handler whose thread is inside the
 * profiler (base/thread.h: thread_enter says so), hence no thread can wait for itself.
 * Lock order, outermost first: publish (publish/dump.c) > book (record/book.c) > stripe
 * (record/specials.c; two stripes in index order). The pools' own locks (labels/current.c,
 * sample/sample.c, interpose/thread.c) are innermost: nothing is taken under them.
 */
#ifndef LABELPROF_BASE_LOCK_H
#define LABELPROF_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attributes.h"

struct lock {
    uint32_t state; /* 0 free, 1 held, 2 held and somebody may be waiting */
};

/* In the child of a fork that kept the ledger: who holds a lock there is gone. Nobody waits. */
extern bool lock_is_alone __attribute__((visibility("hidden")));

void lock_wait(struct lock *lock); /* the slow half of lock_take */
void lock_wake(struct lock *lock); /* the slow half of lock_drop */

/* Pairs with the release in lock_drop: what the last holder wrote is visible. */
static inline bool lock_try(struct lock *lock)
{
    uint32_t is_free = 0;
    return __atomic_compare_exchange_n(&lock->state, &is_free, 1, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static inline void lock_take(struct lock *lock)
{
    if (unlikely(!lock_try(lock)))
        lock_wait(lock);
}

static inline void lock_drop(struct lock *lock)
{
    if (unlikely(__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2))
        lock_wake(lock);
}

#endif
