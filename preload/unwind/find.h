/* SPDX-License-Identifier: MIT
 * The writing side of modules.h, for unwind/ alone: giving ids to code as stacks pass through it.
 *
 * Threads: lock-free for code already known; a new module takes a lock, and whoever can't get it
 * (a signal handler over its holder, at worst) gives up rather than wait for itself.
 */
#ifndef LABELPROF_UNWIND_FIND_H
#define LABELPROF_UNWIND_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include "unwind/cfi.h"

/* Gives the main program's first executable segment id 1. */
bool modules_open(void);

enum modules_answer {
    MODULES_FOUND,
    MODULES_OUTSIDE, /* code of no object, or of one too many: id 0 */
    MODULES_BUSY,    /* ask again another time */
};

/* The id of the module at an address, which a frame of the calling thread lies in. */
enum modules_answer modules_find(uintptr_t address, uint32_t *ret_id,
                                 struct cfi_tables *ret_tables);

/* Counts how often what was known of an address may have changed: rules belong to a generation. */
uint64_t modules_generation(void);
void modules_new_generation(void);

/* Marks the modules that are gone, and starts a generation if there was one. */
void modules_mark_unloaded(void);

#endif
