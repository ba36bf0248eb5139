/* SPDX-License-Identifier: MIT
 * Where the program's libraries define the thread-local variables that label readers know: one site
 * for each definition in each loaded object, in load order.
 *
 * Place: sources → sites → (loaded, slot).
 * Threads: sites_scan by any, several at once too: the newest result stays. sites_get is lock-free.
 * Signals: sites_get anywhere. Allocation: none. Failure: what is not found is not there.
 */
#ifndef LABELPROF_LABELS_SITES_H
#define LABELPROF_LABELS_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "labels/slot.h"
#include "labels/source.h"

/* The table of label providers: who they are, how they are found, how they are read. */
struct source_provider {
    const char *name;
    uint64_t source;    /* enum label_source */
    const char *symbol; /* thread-local */
    size_t slot_bytes;
    const char *version_symbol; /* NULL: the symbol's name says it */
    uint32_t version;
    bool (*read)(uintptr_t slot, struct source_reading *reading);
};
extern const struct source_provider source_providers[];
extern const size_t n_source_providers;

/* One definition in one object. */
struct site {
    uint64_t provider;
    uint64_t is_unloadable;
    uint64_t bias; /* where the object lies */
    struct slot_place place;
};

bool sites_open(void); /* while the regions are being laid out */

/* Looks through the loaded objects; true: some came or went. Takes the loader's list lock; holds none
 * of ours meanwhile. */
bool sites_scan(void);

/* The calling thread has used thread-local storage of an object that came after the last scan: where
 * it has labels of such an object, this is true. */
bool sites_want_scan(void);

bool sites_are_any(void);
bool sites_get(uint64_t index, struct site *ret); /* false: no more */

/* An address lies in the dynamic loader's code or data. */
bool sites_is_in_loader(uintptr_t address);

#endif
