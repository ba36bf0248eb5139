/* SPDX-License-Identifier: MIT
 * The absolute path of a loaded object, kept for ever.
 *
 * Place: modules → path. Threads: one at a time (modules.c's lock). Signals: as that lock.
 * Allocation: REGION_KEEP. Failure: NULL when it is spent.
 */
#ifndef LABELPROF_UNWIND_PATH_H
#define LABELPROF_UNWIND_PATH_H

#include <link.h>
#include <stdbool.h>

#define PATH_OF_VDSO "[vdso]"

/* Before the others: later, getauxval might touch errno. */
void path_open(void);

const char *path_of(const struct link_map *object);

/* Whether `path` is what path_of would give, or gave before the program changed its directory. */
bool path_is_of(const char *path, const struct link_map *object);

#endif
