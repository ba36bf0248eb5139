/* SPDX-License-Identifier: MIT
 * Finding and taking apart the frame description (FDE, with its CIE) that covers an address.
 *
 * Place: cfi → fde. Pure: safe anywhere, no allocation.
 * Failure: a status; no read leaves the bounds of the tables.
 */
#ifndef LABELPROF_UNWIND_FDE_H
#define LABELPROF_UNWIND_FDE_H

#include "unwind/bytes.h"
#include "unwind/cfi.h"

enum fde_status { FDE_FOUND, FDE_NOT_COVERED, FDE_UNREADABLE };

struct fde {
    struct bytes common, own; /* the instructions of the CIE, then those of the FDE */
    uintptr_t begin, limit;   /* the code it describes */
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer_format; /* DW_EH_PE_*, of addresses in the FDE */
    bool is_signal_frame;
};

enum fde_status fde_find(const struct cfi_tables *tables, uintptr_t address, struct fde *ret_fde);

/* A pointer in one of the two forms x86-64 tools write: absolute, or relative to its own place. */
uintptr_t fde_pointer(struct bytes *bytes, uint8_t format);

#endif
