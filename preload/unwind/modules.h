/* SPDX-License-Identifier: MIT
 * The executable segments stacks have passed through, each with the identity of its file.
 *
 * Ids start at 1 (the main program's first executable segment, always) and are never reused for
 * another file or address, so frames of unloaded libraries stay right. A library loaded again at
 * the same address with the same build id and path gets its old id back: rounds of dlopen and
 * dlclose stay bounded. At most MODULES_MAX; beyond it code belongs to "none" (0).
 * Lives in REGION_KEEP: a child of fork has the same address space, hence the same ids.
 * Threads: modules_find registers under a lock; modules_get is lock-free for published ids.
 */
#ifndef LABELPROF_UNWIND_MODULES_H
#define LABELPROF_UNWIND_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODULES_MAX = 4096, BUILD_ID_MAX_BYTES = 32 };

struct module {
    uintptr_t start, limit; /* page-rounded, as /proc/self/maps shows it */
    uint64_t file_offset;   /* of start, page-rounded */
    const char *path;       /* absolute; "[vdso]" for the vDSO */
    uint8_t build_id[BUILD_ID_MAX_BYTES];
    uint8_t build_id_bytes; /* 0: none */
    bool unloaded;
};

/* Ids 1..modules_count() are readable. Pairs with the release when an id is published. */
uint32_t modules_count(void);
const struct module *modules_get(uint32_t id); /* NULL for 0 or an id never given out */

#endif
