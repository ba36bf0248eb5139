/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"

static struct stat stderr_at_start; /* st_ino 0: there was none */

void message_open(void)
{
    if (sys_call(SYS_fstat, 2, (long)&stderr_at_start, 0, 0, 0, 0) != 0)
        stderr_at_start.st_ino = 0;
}

/* A daemon that closed stderr may have a file of its own there. */
static bool is_stderr_there(void)
{
    struct stat now;
    return sys_call(SYS_fstat, 2, (long)&now, 0, 0, 0, 0) == 0 && now.st_ino != 0 &&
           now.st_ino == stderr_at_start.st_ino && now.st_dev == stderr_at_start.st_dev;
}

void message(const char *what, const char *detail)
{
    char buffer[1024];
    struct line line = line_in(buffer, sizeof buffer - 1);
    line_add(&line, "labelprof: ");
    line_add(&line, what);
    if (detail) {
        line_add(&line, ": ");
        line_add(&line, detail);
    }
    buffer[line.n_bytes] = '\n';
    if (is_stderr_there())
        sys_write(2, buffer, line.n_bytes + 1);
}

void message_verbose(const char *what, const char *detail)
{
    if (options.verbose)
        message(what, detail);
}
