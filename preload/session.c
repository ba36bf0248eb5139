/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/message.h"
#include "base/options.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/thread.h"
#include "interpose/new.h"
#include "interpose/next.h"
#include "interpose/signal.h"
#include "interpose/slow.h"
#include "interpose/thread.h"
#include "labels/gather.h"
#include "labels/sources.h"
#include "labels/stack_rules.h"
#include "publish/dump.h"
#include "publish/flusher.h"
#include "publish/out_path.h"
#include "record/book.h"
#include "record/cycle.h"
#include "sample/sample.h"
#include "unwind/walk.h"

enum state { STATE_NEW, STATE_STARTING, STATE_ON, STATE_OFF };
enum instance_state { INSTANCE_NONE, INSTANCE_BEGINNING, INSTANCE_READY };

static uint32_t state; /* atomic enum state; release of ON pairs with the acquire in session_is_on */

static struct instance {
    uint32_t state; /* atomic enum instance_state; 0 again in the child of fork */
    int pid;
} *instance; /* in LEDGER */

/* ---- start ---- */

static bool off(const char *what, const char *detail)
{
    if (what)
        message(what, detail);
    return false;
}

/* Where the program's address space is limited, an eighth of it at most is ours. */
static uint64_t ledger_bytes(void)
{
    struct rlimit limit;
    uint64_t bytes = options.max_memory;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        bytes = limit.rlim_cur / 16 < bytes ? limit.rlim_cur / 16 : bytes;
    return bytes;
}

/* Labels, thread blocks, unwind rules and modules: a quarter of what the samples may use. */
static bool open_regions(void)
{
    return region_open(ledger_bytes(), ledger_bytes() / 4 + (4u << 20)) &&
           (instance = region_fix(REGION_LEDGER, sizeof *instance)) != NULL && book_open() &&
           cycle_open() && sample_open() && current_open() && thread_open() && gather_open() &&
           dump_open() && flusher_open();
}

/* The linker's names for where this library's code lies. */
extern const char our_start[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
extern const char our_end[] __asm__("etext") __attribute__((visibility("hidden")));

static bool is_sanitizers_runtime_here(void)
{
    extern void __asan_init(void) __attribute__((weak));
    extern void __tsan_init(void) __attribute__((weak));
    extern void __msan_init(void) __attribute__((weak));
    return __asan_init || __tsan_init || __msan_init;
}

static void run_pending(unsigned pending);

static bool start(void)
{
    char error[512];
    message_open();
    thread_on_pending(run_pending);
    if (getauxval(AT_SECURE))
        return false;
    if (!options_parse(&options, environ, error, sizeof error))
        return off(error, NULL);
    if (options.disable || is_sanitizers_runtime_here())
        return false;
    if (next_mismatch())
        return off(next_mismatch(), "profiling is off");
    if (!open_regions())
        return off("no address space for LABELPROF_MAX_MEMORY; profiling is off", NULL);
    if (!unwind_open())
        return off("this C library has no lock-free _dl_find_object (glibc 2.35 is the oldest with "
                   "it); profiling is off",
                   NULL);
    if (!stack_rules_open(error, sizeof error))
        return off(error, NULL);
    unwind_leave_out((uintptr_t)our_start, (uintptr_t)our_end);
    out_path_open();
    return true;
}

static void note_main_stack(void)
{
    extern void *__libc_stack_end;
    struct rlimit limit;
    if (sys_getpid() != sys_gettid() || getrlimit(RLIMIT_STACK, &limit) != 0)
        return;
    const rlim_t unlimited_bytes = 64u << 20; /* deeper frames are read with a probe per page */
    rlim_t bytes = limit.rlim_cur < unlimited_bytes ? limit.rlim_cur : unlimited_bytes;
    thread_self.stack_high = (uintptr_t)__libc_stack_end;
    thread_self.stack_low = thread_self.stack_high - bytes;
}

static COLD void start_session(void)
{
    uint32_t new = STATE_NEW;
    if (!environ) /* libc itself is not up yet */
        return;
    if (!__atomic_compare_exchange_n(&state, &new, STATE_STARTING, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    next_resolve();
    new_open(); /* also if it stays off: the doors must know where to forward */
    thread_self.depth++; /* whatever the start itself allocates is not the program's */
    bool is_on = start();
    thread_self.depth--;
    if (is_on)
        note_main_stack();
    __atomic_store_n(&state, is_on ? STATE_ON : STATE_OFF, __ATOMIC_RELEASE);
}

/* ---- instances ---- */

static COLD bool begin_instance(void)
{
    uint32_t none = INSTANCE_NONE;
    if (!__atomic_compare_exchange_n(&instance->state, &none, INSTANCE_BEGINNING, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return none == INSTANCE_READY;
    specials_reset_filter();
    instance->pid = sys_getpid();
    if (thread_self.block)
        thread_self.block->tid = 0; /* the child's one thread has a new id */
    sources_new_cycle();
    dump_begin_instance();
    /* Pairs with the acquire in session_is_on. */
    __atomic_store_n(&instance->state, INSTANCE_READY, __ATOMIC_RELEASE);
    return true;
}

bool session_is_on(void)
{
    uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (unlikely(now == STATE_NEW)) {
        start_session();
        now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    }
    if (now == STATE_OFF)
        sample_never();
    if (now != STATE_ON)
        return false;
    return likely(__atomic_load_n(&instance->state, __ATOMIC_ACQUIRE) == INSTANCE_READY) ||
           begin_instance();
}

bool session_owns_instance(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_ON &&
           __atomic_load_n(&instance->state, __ATOMIC_ACQUIRE) == INSTANCE_READY &&
           instance->pid == sys_getpid();
}

/* ---- fork: the kernel does nearly all of it (base/region.h) ---- */

/* A handler that interrupted the profiler forks. The child returns into that section and must be able
 * to finish it: it gets the ledger as it is, and starts afresh on the way out. */
static void before_fork(void)
{
    if (thread_self.depth)
        region_keep_on_fork(true);
}

static void in_parent(void)
{
    if (thread_self.depth)
        region_keep_on_fork(false);
}

static void start_afresh(void)
{
    region_wipe();
    lock_is_alone = false;
}

static void in_child(void)
{
    sample_forget_draw(); /* or it would cross the same byte as its parent and siblings */
    if (thread_self.depth) {
        region_keep_on_fork(false);
        lock_is_alone = true;
        __atomic_fetch_or(&thread_self.pending, PENDING_WIPE, __ATOMIC_RELAXED);
    } else if (__atomic_load_n(&instance->state, __ATOMIC_RELAXED) != INSTANCE_NONE) {
        region_keep_on_fork(false);
        start_afresh(); /* another thread was in before_fork just then */
    }
}

/* ---- end ---- */

enum { DUMP_STACK_BYTES = 12 * 1024 }; /* what a dump needs below session_end */

/* Asks the kernel for nothing where there is nothing to write: the program may have forbidden itself
 * more than it needs. */
static bool has_samples(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_ON &&
           __atomic_load_n(&instance->state, __ATOMIC_ACQUIRE) == INSTANCE_READY &&
           book_counts().samples != 0;
}

void session_end(void)
{
    if (!has_samples()) {
        message_verbose("no sample was taken; no profile written", NULL);
        return;
    }
    if (!session_owns_instance())
        return;
    if (!thread_has_stack(DUMP_STACK_BYTES)) {
        message("the process ends on a stack too small to write a profile from", NULL);
        return;
    }
    if (!thread_enter()) {
        message("the process ends inside the profiler; no last profile", NULL);
        return;
    }
    dump_all();
    thread_leave();
}

static void at_exit(void *unused)
{
    (void)unused;
    session_end();
}

/* ---- what waits for a thread to come out of the profiler ---- */

static void run_pending(unsigned pending)
{
    if (pending & PENDING_WIPE)
        start_afresh();
    if (pending & PENDING_FREES)
        slow_free_deferred();
    signal_run_pending(pending);
}

/* ---- the constructor ---- */

static bool is_us(const char *name, size_t n_bytes)
{
    static const char file[] = "liblabelprof.so";
    const size_t n_file = sizeof file - 1;
    return n_bytes >= n_file && memcmp(name + n_bytes - n_file, file, n_file) == 0 &&
           (n_bytes == n_file || name[n_bytes - n_file - 1] == '/');
}

/* LABELPROF_CHILDREN=0: our entry alone leaves LD_PRELOAD, in place. */
static void leave_ld_preload(void)
{
    char *value = getenv("LD_PRELOAD");
    if (!value)
        return;
    char *out = value;
    for (const char *at = value; *at;) {
        size_t n_bytes = strcspn(at, " :");
        size_t n_with_separator = n_bytes + (at[n_bytes] != '\0');
        if (!is_us(at, n_bytes)) {
            memmove(out, at, n_with_separator);
            out += n_with_separator;
        }
        at += n_with_separator;
    }
    while (out > value && (out[-1] == ' ' || out[-1] == ':'))
        out--;
    *out = '\0';
    if (out == value)
        unsetenv("LD_PRELOAD");
}

/* Registered before the program's own, atexit handlers run after them and after all static
 * destructors; with no object of its own, __cxa_atexit is not undone by an unload. */
__attribute__((constructor)) static void construct(void)
{
    extern int __cxa_atexit(void (*)(void *), void *, void *);
    extern int __cxa_at_quick_exit(void (*)(void *), void *);
    start_session();
    if (!session_is_on())
        return;
    sources_refresh(false);
    pthread_atfork(before_fork, in_parent, in_child);
    thread_open_main();
    __cxa_atexit(at_exit, NULL, NULL);
    __cxa_at_quick_exit(at_exit, NULL);
    signal_open();
    if (!options.children)
        leave_ld_preload();
    if (options.dump_interval_s)
        flusher_start(next_other.pthread_create);
    message_verbose("profiling; profiles go to", options.out);
}
