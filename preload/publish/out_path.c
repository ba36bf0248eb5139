/* SPDX-License-Identifier: MIT */
#include "publish/out_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"

static struct {
    char directory[PATH_MAX]; /* where the program started */
    char program[256];
    char host[65];
} names; /* written once, at start */

static void read_program_name(void)
{
    char path[PATH_MAX];
    long n_bytes = sys_call(SYS_readlink, (long)"/proc/self/exe", (long)path, sizeof path - 1, 0, 0, 0);
    path[n_bytes > 0 ? n_bytes : 0] = '\0';
    const char *slash = strrchr(path, '/');
    struct line line = line_in(names.program, sizeof names.program);
    line_add(&line, slash && slash[1] ? slash + 1 : "program");
}

void out_path_open(void)
{
    struct utsname host;
    struct line line = line_in(names.host, sizeof names.host);
    if (sys_call(SYS_uname, (long)&host, 0, 0, 0, 0, 0) == 0)
        line_add(&line, host.nodename);
    if (sys_call(SYS_getcwd, (long)names.directory, sizeof names.directory, 0, 0, 0, 0) <= 0 ||
        names.directory[0] != '/')
        names.directory[0] = '\0'; /* unreachable: relative names count from wherever we are */
    read_program_name();
}

static void expand_letter(struct line *line, char letter, const char *type, uint64_t sequence_number)
{
    switch (letter) {
    case 'e':
        line_add(line, names.program);
        break;
    case 'p':
        line_add_number(line, (uint64_t)sys_getpid());
        break;
    case 't':
        line_add(line, type);
        break;
    case 'n':
        line_add_number(line, sequence_number);
        break;
    case 'h':
        line_add(line, names.host);
        break;
    case '%':
        line_add(line, "%");
        break;
    default:
        line_add(line, "%");
        line_add_bytes(line, &letter, 1);
    }
}

int out_path_expand(const char *type, uint64_t sequence_number, char *out, size_t capacity)
{
    struct line line = line_in(out, capacity);
    if (options.out[0] != '/' && names.directory[0]) {
        line_add(&line, names.directory);
        line_add(&line, "/");
    }
    for (const char *at = options.out; *at; at++) {
        if (at[0] == '%' && at[1])
            expand_letter(&line, *++at, type, sequence_number);
        else
            line_add_bytes(&line, at, 1);
    }
    return line.is_cut ? -ENAMETOOLONG : 0;
}
