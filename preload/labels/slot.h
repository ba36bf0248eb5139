/* SPDX-License-Identifier: MIT
 * Where the calling thread's copy of a thread-local variable of some other object lies, without a call
 * into the loader: __tls_get_addr would allocate from the program's heap, and must not be entered
 * in a signal handler or from malloc inside the loader.
 *
 * Two ways: the thread's dtv (an array of the blocks the loader has made for it, by module), and the
 * word in which the loader has noted an offset from the thread pointer. Reading the dtv relies on
 * glibc's layout, as debuggers do; slot_compare checks it against the loader's own answers.
 * Threads and signals: each thread reads its own; safe anywhere. Allocation: none.
 */
#ifndef LABELPROF_LABELS_SLOT_H
#define LABELPROF_LABELS_SLOT_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct slot_place {
    uint64_t module;         /* the object's index in each thread's dtv */
    uint64_t offset;         /* in the module's block */
    uint64_t tp_word;        /* loaded_tls_word; 0: none */
    uint64_t min_generation; /* a dtv older than this knows another object as `module` */
};

bool slot_open(void); /* while the regions are being laid out */

/* 0: the thread has none yet, so its variable is as it was born. */
uintptr_t slot_find(const struct slot_place *place, unsigned *n_probes_left);

/* For each object of the first scan: if the loader says where this thread's block is, the dtv must
 * say the same. Until it once did, and after it once didn't, no dtv is read. */
void slot_compare(const struct dl_phdr_info *object);

/* This thread has touched an object of a later generation. */
bool slot_is_newer_than(uint64_t generation);

/* The highest generation any dtv was seen in so far. An object loaded later belongs to a later one. */
uint64_t slot_generation_seen(void);

#endif
