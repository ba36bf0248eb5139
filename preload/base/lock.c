/* SPDX-License-Identifier: MIT */
#include "base/lock.h"
#include "base/sys.h"

bool lock_is_alone;

void lock_wait(struct lock *lock)
{
    if (lock_is_alone)
        return;
    for (int spins = 0; spins < 64; spins++) {
        if (__atomic_load_n(&lock->state, __ATOMIC_RELAXED) == 0 && lock_try(lock))
            return;
        __builtin_ia32_pause();
    }
    while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
        sys_futex_wait(&lock->state, 2, 0);
}

void lock_wake(struct lock *lock)
{
    sys_futex_wake(&lock->state, 1);
}
