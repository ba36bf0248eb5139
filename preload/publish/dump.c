/* SPDX-License-Identifier: MIT */
#include "publish/dump.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/message.h"
#include "base/options.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/text.h"
#include "encoder/file.h"
#include "publish/export.h"
#include "publish/out_path.h"
#include "record/book.h"
#include "record/cycle.h"

static const struct {
    const char *name;
    uint64_t bit;
    const char *default_type;
} types[] = {
    {"heap", PROFILE_HEAP, "inuse_space"},
    {"allocs", PROFILE_ALLOCS, "alloc_space"},
};

static struct publisher {
    struct lock lock;
    uint64_t n_dumps;
    uint64_t start_monotonic_ns;
} *publisher; /* in LEDGER */

bool dump_open(void)
{
    publisher = region_fix(REGION_LEDGER, sizeof *publisher);
    return publisher != NULL;
}

void dump_begin_instance(void)
{
    publisher->start_monotonic_ns = sys_monotonic_ns();
}

/* ---- signals wait while we write: a handler must not find its thread holding a file, and
 * SIGXFSZ and SIGPIPE are ours to swallow ---- */

typedef uint64_t kernel_sigset;
enum { KERNEL_SIGSET_BYTES = 8 };

static kernel_sigset block_signals(void)
{
    kernel_sigset all = ~UINT64_C(0), before = 0;
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, KERNEL_SIGSET_BYTES, 0, 0);
    return before;
}

static bool is_pending(int signal_number)
{
    kernel_sigset pending = 0;
    sys_call(SYS_rt_sigpending, (long)&pending, KERNEL_SIGSET_BYTES, 0, 0, 0, 0);
    return pending >> (signal_number - 1) & 1;
}

static void swallow(int signal_number)
{
    kernel_sigset set = UINT64_C(1) << (signal_number - 1);
    struct timespec now = {0, 0};
    sys_call(SYS_rt_sigtimedwait, (long)&set, 0, (long)&now, KERNEL_SIGSET_BYTES, 0, 0);
}

struct signal_state {
    kernel_sigset mask;
    bool had_xfsz, had_pipe;
};

static struct signal_state hold_signals(void)
{
    struct signal_state state = {block_signals(), is_pending(SIGXFSZ), is_pending(SIGPIPE)};
    return state;
}

static void let_signals_go(struct signal_state state)
{
    if (!state.had_xfsz && is_pending(SIGXFSZ))
        swallow(SIGXFSZ);
    if (!state.had_pipe && is_pending(SIGPIPE))
        swallow(SIGPIPE);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&state.mask, 0, KERNEL_SIGSET_BYTES, 0, 0);
}

/* ---- writing; under the publish lock ---- */

static int write_to(struct file_sink *file, const char *path, const char *default_type)
{
    struct export_times times = {sys_realtime_ns(),
                                 sys_monotonic_ns() - publisher->start_monotonic_ns};
    int error = file_sink_open(file, path);
    if (error)
        return error;
    error = export_heap(&file->sink, default_type, times);
    if (!error)
        return file_sink_commit(file);
    file_sink_abandon(file);
    return error;
}

static void say_failed(const char *path, int error)
{
    char buffer[PATH_MAX + 128];
    struct line line = line_in(buffer, sizeof buffer);
    line_add(&line, path);
    line_add(&line, ": ");
    const char *reason = strerrordesc_np(-error);
    line_add(&line, reason ? reason : "error");
    line_add(&line, "; set LABELPROF_OUT to a path that can be written");
    message("could not write the profile", buffer);
}

static int write_type(size_t type, const char *path)
{
    static struct file_sink file; /* two paths: too large for a small stack */
    static char expanded[PATH_MAX];
    int error = 0;
    if (!path) {
        error = out_path_expand(types[type].name, publisher->n_dumps, expanded, sizeof expanded);
        path = expanded;
    }
    if (!error)
        error = write_to(&file, path, types[type].default_type);
    if (error)
        say_failed(path, error);
    else
        message_verbose("wrote", path);
    return error ? -1 : 0;
}

static int dump(uint64_t type_bits, const char *path)
{
    int result = 0;
    struct signal_state signals = hold_signals();
    lock_take(&publisher->lock);
    publisher->n_dumps++;
    cycle_publish();
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        if (type_bits & types[i].bit)
            result |= write_type(i, path);
    lock_drop(&publisher->lock);
    let_signals_go(signals);
    return result;
}

void dump_publish(void)
{
    if (!lock_try(&publisher->lock))
        return;
    cycle_publish();
    lock_drop(&publisher->lock);
}

int dump_all(void)
{
    return dump(options.profiles, NULL);
}

void dump_at_exit(void)
{
    if (book_counts().samples)
        dump_all();
    else
        message_verbose("no sample was taken; no profile written", NULL);
}

int dump_one(const char *type, const char *path)
{
    for (size_t i = 0; type && i < ARRAY_LENGTH(types); i++)
        if (strcmp(types[i].name, type) == 0)
            return dump(types[i].bit, path);
    return -1;
}
