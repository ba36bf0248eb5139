/* SPDX-License-Identifier: MIT */
#include "publish/out_path.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
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

static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return sys_call(SYS_stat, (long)a, (long)&of_a, 0, 0, 0, 0) == 0 &&
           sys_call(SYS_stat, (long)b, (long)&of_b, 0, 0, 0, 0) == 0 &&
           of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* The name it was started by, unless that is a script's: redis-server is a link to
 * redis-check-rdb, and nobody looks for a profile under that name. */
static void read_program_name(void)
{
    static const char self[] = "/proc/self/exe";
    const char *started_as = (const char *)getauxval(AT_EXECFN);
    char path[PATH_MAX];
    long n_bytes = sys_call(SYS_readlink, (long)self, (long)path, sizeof path - 1, 0, 0, 0);
    path[n_bytes > 0 ? n_bytes : 0] = '\0';
    const char *name = started_as && is_same_file(started_as, self) ? started_as : path;
    const char *slash = strrchr(name, '/');
    struct line line = line_in(names.program, sizeof names.program);
    line_add(&line, slash ? slash + 1 : name[0] ? name : "program");
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
