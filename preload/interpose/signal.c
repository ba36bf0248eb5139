/* SPDX-License-Identifier: MIT */
#include "interpose/signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/sys.h"
#include "base/thread.h"
#include "interpose/next.h"
#include "publish/dump.h"
#include "publish/flusher.h"
#include "session.h"

enum { LAST_SIGNAL = 64 };

static uint64_t ours;                            /* bit n-1: signal n; written by signal_open */
static struct sigaction views[LAST_SIGNAL + 1]; /* what the program thinks; under view_lock */
static struct lock view_lock;                    /* sigaction is rare: one lock for all */

static bool is_ours(int number)
{
    return unlikely(ours != 0) && number >= 1 && number <= LAST_SIGNAL &&
           (ours >> (number - 1) & 1);
}

static void dump_now(void)
{
    if (flusher_ask_dump() || !session_owns_instance())
        return;
    thread_enter();
    dump_all();
    thread_leave();
}

static _Noreturn void die_by(int number)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    uint64_t only_it = UINT64_C(1) << (number - 1);
    next_other.sigaction(number, &by_default, NULL);
    sys_call(SYS_tgkill, sys_getpid(), sys_gettid(), number, 0, 0, 0);
    sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&only_it, 0, sizeof only_it, 0, 0);
    for (;;) /* a signal that is blocked elsewhere still ends the process */
        sys_call(SYS_exit_group, 128 + number, 0, 0, 0, 0, 0);
}

static void end_by(int number)
{
    session_end();
    die_by(number);
}

static bool was_caused_by_this_thread(int number, const siginfo_t *info)
{
    bool is_fault = number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL;
    return is_fault && info->si_code > 0;
}

static void leave_note(unsigned what)
{
    __atomic_fetch_or(&thread_self.pending, what, __ATOMIC_RELAXED);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    bool is_dump = (uint64_t)number == options.dump_signal;
    int saved_errno = errno;
    if (thread_self.depth == 0) {
        is_dump ? dump_now() : end_by(number);
    } else if (is_dump) {
        leave_note(PENDING_DUMP);
    } else if (was_caused_by_this_thread(number, info)) {
        die_by(number); /* inside the profiler: nothing can be written, and it would only recur */
    } else {
        thread_self.pending_exit_signal = (uint8_t)number;
        leave_note(PENDING_EXIT);
    }
    errno = saved_errno;
}

void signal_run_pending(unsigned pending)
{
    if (pending & PENDING_DUMP)
        dump_now();
    if (pending & PENDING_EXIT)
        end_by(thread_self.pending_exit_signal);
}

static int install(int number)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    return next_other.sigaction(number, &action, NULL);
}

void signal_open(void)
{
    uint64_t wanted = options.exit_signals;
    if (options.dump_signal)
        wanted |= UINT64_C(1) << (options.dump_signal - 1);
    for (int number = 1; number <= LAST_SIGNAL; number++) {
        struct sigaction now;
        if (!(wanted >> (number - 1) & 1) || next_other.sigaction(number, NULL, &now) != 0)
            continue;
        /* Anything but the default was chosen: by a library's constructor, or by nohup. */
        if (now.sa_handler == SIG_DFL && install(number) == 0) {
            views[number] = now;
            ours |= UINT64_C(1) << (number - 1);
        }
    }
}

/* Signals wait while the view is locked: a handler may call sigaction. */
static sigset_t lock_view(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    lock_take(&view_lock);
    return before;
}

static void unlock_view(sigset_t before)
{
    lock_drop(&view_lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int set_view(int number, const struct sigaction *action)
{
    int result = action->sa_handler == SIG_DFL ? install(number)
                                               : next_other.sigaction(number, action, NULL);
    if (result == 0)
        views[number] = *action;
    return result;
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    next_resolve();
    if (!is_ours(number))
        return next_other.sigaction(number, action, old);
    sigset_t before = lock_view();
    struct sigaction view = views[number];
    int result = action ? set_view(number, action) : 0;
    unlock_view(before);
    if (old && result == 0)
        *old = view;
    return result;
}

static void (*set_handler(int number, void (*handler)(int), int flags, bool masks_itself))(int)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&action.sa_mask);
    if (masks_itself)
        sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

EXPORT void (*signal(int number, void (*handler)(int)))(int)
{
    next_resolve();
    if (!is_ours(number))
        return next_other.signal(number, handler);
    return set_handler(number, handler, SA_RESTART, true);
}

/* What signal() is to a program built for strict ISO C. */
void (*__sysv_signal(int number, void (*handler)(int)))(int);
EXPORT void (*__sysv_signal(int number, void (*handler)(int)))(int)
{
    next_resolve();
    if (!is_ours(number))
        return next_other.sysv_signal(number, handler);
    return set_handler(number, handler, SA_RESETHAND | SA_NODEFER, false);
}
