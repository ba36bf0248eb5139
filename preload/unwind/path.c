/* SPDX-License-Identifier: MIT */
#include "unwind/path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "base/region.h"
#include "base/sys.h"

/* Not on the stack: a thread may have little of it. Its user is alone, see path.h. */
static char scratch[2 * PATH_MAX];

static uintptr_t vdso; /* its load address, fixed by path_open; 0: none */

void path_open(void)
{
    vdso = getauxval(AT_SYSINFO_EHDR);
}

static bool is_vdso(const struct link_map *object)
{
    return object->l_addr != 0 && object->l_addr == vdso;
}

static const char *keep(const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *kept = region_take(REGION_KEEP, bytes);
    if (kept)
        memcpy(kept, path, bytes);
    return kept;
}

/* Joined to the directory of now; a "./" in front is dropped. The kernel's answer that the
 * directory is unreachable has no leading slash either. */
static const char *keep_absolute(const char *name)
{
    if (name[0] == '/')
        return keep(name);
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    long bytes = sys_call(SYS_getcwd, (long)scratch, PATH_MAX, 0, 0, 0, 0);
    size_t n = bytes > 0 && scratch[0] == '/' ? (size_t)bytes - 1 : 0;
    if (n + 1 + strlen(name) + 1 > sizeof(scratch))
        return keep(name);
    if (n == 0 || scratch[n - 1] != '/')
        scratch[n++] = '/';
    strcpy(scratch + n, name);
    return keep(scratch);
}

/* The kernel started the loader itself (`ld.so ./program`): /proc/self/exe is not the program. */
static bool loader_is_the_program(void)
{
    return getauxval(AT_BASE) == 0 && strchr(program_invocation_name, '/');
}

static const char *main_program(void)
{
    if (loader_is_the_program())
        return keep_absolute(program_invocation_name);
    long n = sys_call(SYS_readlink, (long)"/proc/self/exe", (long)scratch, PATH_MAX - 1, 0, 0, 0);
    if (n > 0) {
        scratch[n] = '\0';
        return keep(scratch);
    }
    const char *as_executed = (const char *)getauxval(AT_EXECFN); /* no /proc: a chroot */
    return keep_absolute(as_executed ? as_executed : program_invocation_name);
}

const char *path_of(const struct link_map *object)
{
    if (is_vdso(object))
        return keep(PATH_OF_VDSO);
    return object->l_name[0] ? keep_absolute(object->l_name) : main_program();
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && memcmp(text + n - n_end, end, n_end) == 0;
}

bool path_is_of(const char *path, const struct link_map *object)
{
    const char *name = object->l_name;
    if (is_vdso(object))
        return strcmp(path, PATH_OF_VDSO) == 0;
    if (name[0] == '/')
        return strcmp(path, name) == 0;
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return ends_with(path, name);
}
