/* SPDX-License-Identifier: MIT
 * What a loaded ELF object says about itself in memory: segments, build id, unwind tables.
 *
 * Place: modules → elf. Reads only pages the loader mapped from the object's own segments.
 * Threads and signals: lock-free, safe anywhere while the object stays loaded (a frame in it does
 * that). Allocation: none. Failure: false.
 */
#ifndef LABELPROF_UNWIND_ELF_H
#define LABELPROF_UNWIND_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include "unwind/cfi.h"

struct elf_segment {
    uintptr_t start, limit; /* page-rounded */
    uint64_t file_offset;   /* of start */
    const struct link_map *object;
    const uint8_t *build_id; /* inside the object's note */
    uint32_t build_id_bytes;
    struct cfi_tables tables;
};

/* The executable segment that holds an address. False: no object's, or not executable. */
bool elf_find(uintptr_t address, struct elf_segment *ret_segment);

/* The lowest executable address of the main program; 0 if the kernel didn't tell. */
uintptr_t elf_main_code(void);

#endif
