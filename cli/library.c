/* SPDX-License-Identifier: MIT
 * Where liblabelprof.so is, see library.h.
 */
#include "cli/library.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/memory.h"

#define LIBRARY "liblabelprof.so"

/* From the folder of the command: a build tree, then /usr-like trees. */
static const char *const places[] = {
    "",
    "../lib/",
#if defined(__x86_64__)
    "../lib/x86_64-linux-gnu/",
#elif defined(__aarch64__)
    "../lib/aarch64-linux-gnu/",
#endif
    "../lib64/",
};
enum { N_PLACES = sizeof places / sizeof *places };

/* The folder of the running command, with its final slash. */
static char *command_folder(void)
{
    char path[PATH_MAX];
    ssize_t n_bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n_bytes <= 0) {
        complain("run: /proc/self/exe can't be read, so the library beside the command can't be "
                 "found; mount /proc, or set LD_PRELOAD to %s yourself",
                 LIBRARY);
        return NULL;
    }
    path[n_bytes] = '\0';
    char *slash = strrchr(path, '/');
    slash[1] = '\0';
    return xstrdup(path);
}

static void complain_not_found(const char *folder)
{
    char *looked = xstrdup("");
    for (int i = 0; i < N_PLACES; i++) {
        char *longer = xformat("%s%s%s%s", looked, i ? ", " : "", folder, places[i]);
        free(looked);
        looked = longer;
    }
    complain("run: no %s in %s; build it ('make') or install it beside the command "
             "('make install')",
             LIBRARY, looked);
    free(looked);
}

/* The dynamic linker splits LD_PRELOAD at spaces and colons and expands $ORIGIN and the like. */
static char *check_path(char *path)
{
    if (!strpbrk(path, " :$"))
        return path;
    complain("run: LD_PRELOAD can't carry a path with a space, ':' or '$', as in '%s'; install "
             "labelprof elsewhere ('make install PREFIX=/opt/labelprof')",
             path);
    free(path);
    return NULL;
}

char *library_find(void)
{
    char *folder = command_folder();
    if (!folder)
        return NULL;
    for (int i = 0; i < N_PLACES; i++) {
        char *candidate = xformat("%s%s%s", folder, places[i], LIBRARY);
        char *path = realpath(candidate, NULL);
        free(candidate);
        if (path && access(path, R_OK) == 0) {
            free(folder);
            return check_path(path);
        }
        free(path);
    }
    complain_not_found(folder);
    free(folder);
    return NULL;
}

char *library_preload(const char *library, const char *existing)
{
    if (!existing || existing[0] == '\0')
        return xstrdup(library);
    return xformat("%s:%s", library, existing);
}
