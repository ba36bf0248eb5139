/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/sys.h"

__thread struct thread_state thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static void (*act_on_pending)(unsigned); /* written once, before any note can be left */

void thread_on_pending(void (*act)(unsigned pending))
{
    act_on_pending = act;
}

void thread_run_pending(void)
{
    unsigned pending = __atomic_exchange_n(&thread_self.pending, 0, __ATOMIC_RELAXED);
    if (act_on_pending)
        act_on_pending(pending);
}

static bool has_room_elsewhere(size_t bytes)
{
    stack_t stack = {0};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    sys_call(SYS_sigaltstack, 0, (long)&stack, 0, 0, 0, 0);
    uintptr_t low = (uintptr_t)stack.ss_sp;
    bool is_on_it = here >= low && here - low < stack.ss_size;
    return !is_on_it || here - low >= bytes;
}

bool thread_has_stack(size_t bytes)
{
    size_t left = thread_stack_left();
    return left ? left >= bytes : has_room_elsewhere(bytes);
}

static pthread_key_t key;
static void (*last_act)(void); /* NULL: nobody watches */

/* A thread-specific destructor that puts itself off to the last round, so that the program's own
 * still find their labels; the value counts the rounds. */
static void on_exit_of_thread(void *round)
{
    if ((uintptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(key, (void *)((uintptr_t)round + 1));
    else
        last_act();
}

void thread_exit_open(void (*at_exit)(void))
{
    if (pthread_key_create(&key, on_exit_of_thread) == 0)
        last_act = at_exit;
}

/* The key is one of the first 32, whose values need no memory. */
void thread_exit_watch(void)
{
    if (last_act && !pthread_getspecific(key))
        pthread_setspecific(key, (void *)1);
}
