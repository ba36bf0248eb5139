/* SPDX-License-Identifier: MIT
 * The rule for one address, read from a module's .eh_frame: the common call frame instructions,
 * evaluated here because a program's first samples are mostly first sights of their call sites.
 *
 * Place: rules → cfi. Knows bytes, not modules; the tests feed it random ones.
 * Threads and signals: pure, safe anywhere. Allocation: none; about 1 KiB of stack.
 * Failure: RULE_NONE for what it can't express; no read leaves [low, limit), whatever is there.
 */
#ifndef LABELPROF_UNWIND_CFI_H
#define LABELPROF_UNWIND_CFI_H

#include <stdint.h>

/* Addresses, not pointers to objects: the tables lie in somebody else's mapping. */
struct cfi_tables {
    uintptr_t header;     /* .eh_frame_hdr; 0: the module has none */
    uintptr_t low, limit; /* the segment it lies in, and .eh_frame with it */
};

/* RULE_GUESS if no description covers the address. The rule's module is left 0. */
uint64_t cfi_rule(const struct cfi_tables *tables, uintptr_t address);

#endif
