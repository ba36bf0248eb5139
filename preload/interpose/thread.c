/* SPDX-License-Identifier: MIT
 * A new thread starts in our trampoline: it takes over its creator's API labels and name, and
 * notes its stack's bounds. The trampoline's frame is left out of stacks by its address.
 *
 * Threads: the start record belongs to the creator until creation succeeded, then to the new
 * thread. Allocation: start records from a REGION_KEEP pool. Failure: the thread is created as if
 * we were not there; errors and attributes of the real call are passed through.
 */
#include "interpose/thread.h"

#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/thread.h"
#include "interpose/next.h"
#include "labels/current.h"
#include "publish/flusher.h"
#include "session.h"
#include "unwind/walk.h"

enum { DESCRIPTOR_BYTES = 4096 }; /* struct pthread and static TLS, rounded up */

struct start {
    void *(*routine)(void *);
    thrd_start_t c11_routine; /* instead, if made by thrd_create */
    void *argument;
    struct label_capture *labels;
    size_t stack_bytes;
    char name[16];
};

static struct lock *starts_lock; /* in LEDGER: free in the child of fork */
static struct pool *starts;      /* in KEEP */

bool thread_open(void)
{
    starts_lock = region_fix(REGION_LEDGER, sizeof *starts_lock);
    starts = region_fix(REGION_KEEP, sizeof *starts);
    return starts_lock && starts;
}

static void on_thread_exit(void)
{
    if (thread_enter()) {
        current_forget();
        thread_self.is_over = true;
        thread_leave();
    }
    if (thread_self.is_counted)
        flusher_thread_ended();
}

void thread_open_main(void)
{
    thread_exit_open(on_thread_exit);
    thread_self.is_counted = true;
    thread_exit_watch();
}

static struct start *start_get(void)
{
    lock_take(starts_lock);
    struct start *start = pool_get(starts, REGION_KEEP, sizeof *start);
    lock_drop(starts_lock);
    return start;
}

static void start_put(struct start *start)
{
    lock_take(starts_lock);
    pool_put(starts, start);
    lock_drop(starts_lock);
}

static size_t stack_bytes_of(const pthread_attr_t *attributes)
{
    pthread_attr_t defaults;
    size_t bytes = 0, guard_bytes = 0;
    if (!attributes)
        pthread_attr_init(&defaults);
    pthread_attr_getstacksize(attributes ? attributes : &defaults, &bytes);
    pthread_attr_getguardsize(attributes ? attributes : &defaults, &guard_bytes);
    if (!attributes)
        pthread_attr_destroy(&defaults);
    /* glibc takes the guard and its descriptor out of the size asked for. */
    size_t taken_bytes = guard_bytes + DESCRIPTOR_BYTES;
    return bytes > taken_bytes ? bytes - taken_bytes : 0;
}

static struct start *make_start(const pthread_attr_t *attributes, void *argument)
{
    struct label_capture *labels = current_capture();
    if (!thread_enter()) {
        current_release(labels);
        return NULL;
    }
    struct start *start = start_get();
    struct thread_block *block = start ? current_block() : NULL;
    if (start) {
        memset(start, 0, sizeof *start);
        start->argument = argument;
        start->labels = labels;
        start->stack_bytes = stack_bytes_of(attributes);
        if (block)
            memcpy(start->name, current_name(block), sizeof start->name);
    }
    thread_leave();
    if (!start)
        current_release(labels);
    return start;
}

static void drop_start(struct start *start)
{
    current_release(start->labels);
    if (thread_enter()) {
        start_put(start);
        thread_leave();
    }
}

/* glibc puts the thread's descriptor, which the thread pointer points to, at the top of its stack. */
static void note_stack(size_t stack_bytes)
{
    thread_self.stack_high = (uintptr_t)__builtin_thread_pointer();
    thread_self.stack_low = thread_self.stack_high - stack_bytes;
}

static void begin_thread(const struct start *start)
{
    note_stack(start->stack_bytes);
    thread_self.is_counted = true;
    thread_exit_watch();
    current_name_is(start->name);
    if (thread_self.block)
        thread_self.block->start_routine = start->routine
                                               ? (uintptr_t)start->routine
                                               : (uintptr_t)start->c11_routine;
    if (start->labels)
        current_attach(start->labels);
}

static void *thread_main(void *argument)
{
    struct start start = *(struct start *)argument;
    begin_thread(&start);
    drop_start(argument);
    return start.routine(start.argument);
}

static int thread_main_c11(void *argument)
{
    struct start start = *(struct start *)argument;
    begin_thread(&start);
    drop_start(argument);
    return start.c11_routine(start.argument);
}

/* Counted before it exists, so that its end can't come first. */
static void expect_thread(void)
{
    if (thread_enter()) {
        flusher_refresh_sources(0);
        thread_leave();
    }
    flusher_thread_began();
}

static void settle(struct start *start, bool is_created)
{
    if (is_created) {
        flusher_start(next_other.pthread_create);
        return;
    }
    flusher_thread_ended();
    drop_start(start);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    next_resolve();
    struct start *start = session_is_on() ? make_start(attributes, argument) : NULL;
    if (!start)
        return next_other.pthread_create(thread, attributes, routine, argument);
    start->routine = routine;
    expect_thread();
    int error = next_other.pthread_create(thread, attributes, thread_main, start);
    settle(start, error == 0);
    return error;
}

/* glibc's thrd_create does not come through pthread_create's door. */
EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
    next_resolve();
    if (!next_other.thrd_create)
        return thrd_error;
    struct start *start = session_is_on() ? make_start(NULL, argument) : NULL;
    if (!start)
        return next_other.thrd_create(thread, routine, argument);
    start->c11_routine = routine;
    expect_thread();
    int result = next_other.thrd_create(thread, thread_main_c11, start);
    settle(start, result == thrd_success);
    return result;
}

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    next_resolve();
    int error = next_other.pthread_setname_np(thread, name);
    if (error || !session_is_on())
        return error;
    if (pthread_equal(thread, pthread_self()))
        current_name_is(name);
    else
        current_names_changed();
    return 0;
}

/* The real one is variadic; on x86-64 five integer arguments pass either way alike. */
int prctl_door(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
    __asm__("prctl");
EXPORT int prctl_door(int option, unsigned long a, unsigned long b, unsigned long c,
                      unsigned long d)
{
    next_resolve();
    int result = next_other.prctl(option, a, b, c, d);
    if (option == PR_SET_NAME && result == 0 && session_is_on())
        current_name_is((const char *)a);
    return result;
}
