/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"

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
    sys_write(2, buffer, line.n_bytes + 1);
}

void message_verbose(const char *what, const char *detail)
{
    if (options.verbose)
        message(what, detail);
}
