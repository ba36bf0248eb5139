/* SPDX-License-Identifier: MIT
 * The functions a loaded object exports, read where the loader has them: no file is opened.
 *
 * Place: the tables are those the loader itself follows to bind a symbol, and are trusted as far.
 * Threads and signals: lock-free, safe anywhere while the object stays loaded (a frame in it does
 * that). Allocation: none. Failure: false: no object lies there, or it exports nothing.
 */
#ifndef LABELPROF_UNWIND_EXPORTS_H
#define LABELPROF_UNWIND_EXPORTS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct exports {
    const ElfW(Sym) * symbols;
    uint32_t first, n_symbols; /* those below `first` are imported */
    const char *names;
    uint64_t names_bytes;
    uintptr_t bias;
};

struct exported_function {
    uintptr_t start, limit;
    const char *name;
    uint64_t name_bytes;
};

/* Of the object that an address lies in. */
bool exports_open(uintptr_t address, struct exports *ret_exports);

/* *cursor starts at 0. False: no more. */
bool exports_next(const struct exports *exports, uint32_t *cursor, struct exported_function *ret);

#endif
