/* SPDX-License-Identifier: MIT
 * What a thread keeps: a few words in initial-exec TLS, valid when all zero, no destructor.
 *
 * Place: base; the doors read it on every call. Everything larger is behind `block`, from
 * REGION_KEEP, because TLS comes out of each thread's stack.
 * Threads: only its own thread touches a thread_state. Signals: a handler runs on the same state;
 * `depth` tells whether its thread was inside the profiler when it struck.
 */
#ifndef LABELPROF_BASE_THREAD_H
#define LABELPROF_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct thread_block; /* labels/current.h */

struct thread_state {
    uint64_t remaining;   /* bytes until the next sample; 0 in a new thread: it seeds itself */
    uint32_t depth;       /* how many profiler sections this thread is in */
    uint8_t is_seeded;    /* `remaining` was drawn */
    uint8_t lg_factor;    /* the interval was sample_bytes << lg_factor when it was drawn */
    uint8_t pending;      /* enum thread_pending: what waits for depth 0 */
    uint8_t pending_exit_signal;
    uint8_t is_counted;   /* the flusher counts this thread among the program's */
    uint8_t is_over;      /* its last act is done: it gets no block any more */
    uint8_t is_private;   /* what this thread allocates now is the profiler's: see below */
    uint8_t is_in_handler; /* the last walk passed a signal's frame */
    uint64_t random;      /* generator state, 0: not seeded */
    void *deferred_frees; /* blocks freed by a handler inside the profiler, linked through
                             their first word; freed for real on the way out */
    size_t asked_bytes;   /* what a passed-on aligned operator new was asked for: libstdc++ rounds it
                             up before it allocates; 0: nothing pending */
    struct thread_block *block;
    uintptr_t stack_low, stack_high; /* 0: unknown */
};

enum thread_pending { PENDING_FREES = 1, PENDING_DUMP = 2, PENDING_EXIT = 4, PENDING_WIPE = 8 };

extern __thread struct thread_state thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Enter the profiler. False: this thread is inside already (a handler interrupted it, or the
 * profiler's own library calls came back through a door); the caller must not take any lock. */
static inline bool thread_enter(void)
{
    if (unlikely(thread_self.depth != 0))
        return false;
    thread_self.depth = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler sees depth 1 before anything inside */
    return true;
}

/* What is done, at depth 0, about the notes (enum thread_pending) that handlers left. From the start. */
void thread_on_pending(void (*act)(unsigned pending));
void thread_run_pending(void);

static inline void thread_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread_self.depth = 0;
    if (unlikely(thread_self.pending))
        thread_run_pending();
}

/* At least `bytes` are left below the caller, on whatever stack it is. A signal's stack may be tiny,
 * and the kernel knows it; a stack of the program's making (coroutines) is taken to be large enough
 * for malloc's usual depth. */
bool thread_has_stack(size_t bytes);

/* `at_exit` runs in each watched thread, outside the profiler, after the program's own thread-specific
 * destructors. From the constructor. */
void thread_exit_open(void (*at_exit)(void));
void thread_exit_watch(void);

/* Between these two the thread's malloc, calloc and realloc are served from the early arena, not
 * from the program's heap, and never sampled: loading libunwind allocates. With nothing remaining,
 * every call takes the slow way, where is_private is looked at. */
static inline uint64_t thread_begin_private(void)
{
    uint64_t remaining = thread_self.remaining;
    thread_self.is_private = true;
    thread_self.remaining = 0;
    return remaining;
}

static inline void thread_end_private(uint64_t remaining)
{
    thread_self.remaining = remaining;
    thread_self.is_private = false;
}

/* Bytes of the thread's own stack left below the caller; 0 on any other stack (a signal's, a
 * coroutine's) and when the thread's bounds are unknown. */
static inline size_t thread_stack_left(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (here < thread_self.stack_low || here >= thread_self.stack_high)
        return 0;
    return here - thread_self.stack_low;
}

#endif
