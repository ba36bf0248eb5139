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

static void swallow(int signal_number)
{
    kernel_sigset set = UINT64_C(1) << (signal_number - 1);
    struct timespec now = {0, 0};
    sys_call(SYS_rt_sigtimedwait, (long)&set, 0, (long)&now, KERNEL_SIGSET_BYTES, 0, 0);
}

/* A failed write leaves its signal pending: it was not the program's doing. */
static void let_signals_go(kernel_sigset before, int error)
{
    if (error == -EFBIG)
        swallow(SIGXFSZ);
    if (error == -EPIPE)
        swallow(SIGPIPE);
    sys_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, KERNEL_SIGSET_BYTES, 0, 0);
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
    return error;
}

static int dump(uint64_t type_bits, const char *path)
{
    int first_error = 0;
    kernel_sigset before = block_signals();
    lock_take(&publisher->lock);
    publisher->n_dumps++;
    cycle_publish();
    for (size_t i = 0; i < ARRAY_LENGTH(types); i++)
        if (type_bits & types[i].bit) {
            int error = write_type(i, path);
            first_error = first_error ? first_error : error;
        }
    lock_drop(&publisher->lock);
    let_signals_go(before, first_error);
    return first_error ? -1 : 0;
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

int dump_one(const char *type, const char *path)
{
    for (size_t i = 0; type && i < ARRAY_LENGTH(types); i++)
        if (strcmp(types[i].name, type) == 0)
            return dump(types[i].bit, path);
    return -1;
}
