/* SPDX-License-Identifier: MIT */
#include "publish/flusher.h"

#include <limits.h>
#include <signal.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/thread.h"
#include "labels/sets.h"
#include "labels/sources.h"
#include "publish/dump.h"
#include "record/book.h"
#include "unwind/walk.h"

/* Stack of the thread: a dump's frames are small, its buffers are static or mapped. */
enum { FLUSHER_STACK_BYTES = 128 * 1024, INLINE_STACK_BYTES = 48 * 1024 };

static struct flusher {
    uint32_t is_running;    /* atomic; taken by who starts it, given up by the thread itself */
    bool has_thread;        /* `thread` is to be joined; who took is_running, or the last thread */
    pthread_t thread;
    int32_t n_threads;      /* atomic: the program's, besides its first; -1: that one is gone too */
    uint32_t wake;          /* futex: +1 when there is something to do before the next cycle */
    uint32_t n_dumps_asked; /* atomic */
    uint64_t next_cycle_ns; /* atomic, relaxed: a late or doubled cycle is harmless */
    uint64_t next_dump_ns;
    uint64_t n_samples_relieved; /* atomic, relaxed: book_counts().samples at the last relief */
} *flusher; /* in LEDGER: the child of fork has no flusher and one thread */

bool flusher_open(void)
{
    flusher = region_fix(REGION_LEDGER, sizeof *flusher);
    return flusher != NULL;
}

static bool is_dump_due(uint64_t now_ns)
{
    uint64_t interval_ns = options.dump_interval_s * UINT64_C(1000000000);
    uint64_t due_ns = __atomic_load_n(&flusher->next_dump_ns, __ATOMIC_RELAXED);
    if (!interval_ns || now_ns < due_ns)
        return false;
    __atomic_store_n(&flusher->next_dump_ns, now_ns + interval_ns, __ATOMIC_RELAXED);
    return due_ns != 0; /* the first look only starts the clock */
}

static bool was_dump_asked(void)
{
    return __atomic_exchange_n(&flusher->n_dumps_asked, 0, __ATOMIC_RELAXED) != 0;
}

/* A cycle, or less where dumps are due more often. */
static uint64_t nap_ns(void)
{
    uint64_t cycle_ns = options.cycle_ms * 1000000;
    uint64_t interval_ns = options.dump_interval_s * UINT64_C(1000000000);
    return interval_ns && interval_ns < cycle_ns ? interval_ns : cycle_ns;
}

static void run_cycle(uint64_t now_ns)
{
    __atomic_store_n(&flusher->next_cycle_ns, now_ns + nap_ns(), __ATOMIC_RELAXED);
    if (is_dump_due(now_ns) | was_dump_asked())
        dump_all();
    else
        dump_publish();
    sources_new_cycle();
}

static int threads_now(void)
{
    return __atomic_load_n(&flusher->n_threads, __ATOMIC_RELAXED);
}

/* Until somebody wakes us who did not before we looked for work (`wake_seen`), or the cycle is over.
 * True: somebody needs us. */
static bool sleep_a_cycle(uint32_t wake_seen)
{
    if (threads_now() >= 0)
        sys_futex_wait(&flusher->wake, wake_seen, nap_ns());
    bool is_asked = __atomic_load_n(&flusher->n_dumps_asked, __ATOMIC_RELAXED) != 0;
    return threads_now() >= (options.dump_interval_s || is_asked ? 0 : 1);
}

static void *run(void *unused)
{
    (void)unused;
    uint32_t wake_seen;
    do {
        /* Pairs with the release in wake_up: what was asked before it is seen below. */
        wake_seen = __atomic_load_n(&flusher->wake, __ATOMIC_ACQUIRE);
        uint64_t remaining = thread_begin_private();
        unwind_load_compiler_if_wanted();
        thread_end_private(remaining);
        thread_enter();
        sources_refresh(false);
        run_cycle(sys_monotonic_ns());
        thread_leave();
    } while (sleep_a_cycle(wake_seen));
    __atomic_store_n(&flusher->is_running, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* Its own samples would be noise: whatever it calls in libc goes by the doors unseen. */
static void *thread_main(void *unused)
{
    thread_self.remaining = UINT64_MAX;
    thread_self.is_seeded = true;
    return run(unused);
}

/* One that has ended by itself, or is about to. */
static void join_thread(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* thread creation can't be cancelled */
    if (flusher->has_thread)
        pthread_join(flusher->thread, NULL);
    pthread_setcancelstate(before, NULL);
    flusher->has_thread = false;
}

static void create_thread(flusher_create_function *create)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited: no signal of the program's lands there */
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, FLUSHER_STACK_BYTES > PTHREAD_STACK_MIN
                                               ? FLUSHER_STACK_BYTES
                                               : (size_t)PTHREAD_STACK_MIN);
    flusher->has_thread = create(&flusher->thread, &attributes, thread_main, NULL) == 0;
    if (!flusher->has_thread)
        __atomic_store_n(&flusher->is_running, 0, __ATOMIC_RELEASE); /* samplers tick instead */
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void flusher_start(flusher_create_function *create)
{
    uint32_t stopped = 0;
    /* Acquire pairs with the release of the thread that ended: one at a time. */
    if (__atomic_load_n(&flusher->is_running, __ATOMIC_RELAXED) == 0 &&
        __atomic_compare_exchange_n(&flusher->is_running, &stopped, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        join_thread();
        create_thread(create);
    }
}

void flusher_thread_began(void)
{
    __atomic_fetch_add(&flusher->n_threads, 1, __ATOMIC_RELAXED);
}

static void wake_up(void)
{
    /* Release pairs with the acquire in `run`: what was asked is seen with the wake. */
    __atomic_fetch_add(&flusher->wake, 1, __ATOMIC_RELEASE);
    sys_futex_wake(&flusher->wake, 1);
}

void flusher_thread_ended(void)
{
    if (__atomic_sub_fetch(&flusher->n_threads, 1, __ATOMIC_RELEASE) >= 0)
        return;
    /* The program's last thread: the process must end with it. */
    wake_up();
    join_thread();
}

bool flusher_ask_dump(void)
{
    if (!__atomic_load_n(&flusher->is_running, __ATOMIC_RELAXED))
        return false;
    __atomic_fetch_add(&flusher->n_dumps_asked, 1, __ATOMIC_RELAXED);
    wake_up();
    return true;
}

static bool is_running(void)
{
    return __atomic_load_n(&flusher->is_running, __ATOMIC_RELAXED);
}

bool flusher_refresh_sources(uintptr_t caller)
{
    if (likely(!sources_want_refresh()))
        return false;
    if (is_running() || threads_now() != 0) {
        if (sources_take_wish())
            wake_up();
        return false;
    }
    if (thread_stack_left() < INLINE_STACK_BYTES || !sources_may_scan_under(caller))
        return false;
    return sources_refresh(true);
}

/* Label sets that came and went within a cycle wait for its end to be forgotten. When they take the
 * room of live ones the cycle ends now; but not again before as many samples as could refill a
 * quarter of it, should they all be live. */
static void relieve_label_sets(void)
{
    uint64_t n_samples = book_counts().samples;
    uint64_t n_before = __atomic_load_n(&flusher->n_samples_relieved, __ATOMIC_RELAXED);
    if (n_samples - n_before <= options.max_label_sets / 4)
        return;
    __atomic_store_n(&flusher->n_samples_relieved, n_samples, __ATOMIC_RELAXED);
    dump_publish();
}

void flusher_tick(void)
{
    if (unlikely(sets_are_crowded()))
        relieve_label_sets();
    if (is_running())
        return;
    uint64_t now_ns = sys_monotonic_ns();
    if (now_ns < __atomic_load_n(&flusher->next_cycle_ns, __ATOMIC_RELAXED) ||
        thread_stack_left() < INLINE_STACK_BYTES)
        return;
    run_cycle(now_ns);
    sources_wish_scan();
}
