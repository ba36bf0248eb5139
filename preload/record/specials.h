/* SPDX-License-Identifier: MIT
 * One side record ("special") per live sample, in an exact striped table.
 *
 * A special is on the table from before its pointer is returned until just before its block is
 * released, so an address is never in it twice. It is also the event log: an allocation puts it on
 * its stripe's born list, a free on the freed list (or marks it, if it is still on the born list),
 * each with the stage of the cycle it happened in, read inside the stripe's lock. Nothing can
 * overflow, nothing is lost.
 *
 *   absent --insert--> on table, born list --swept--> on table --detach--> freed list --swept--> absent
 *
 * Threads: each stripe has its lock; lists are taken by the sweeper under it (record/cycle.h).
 * Signals: not in a handler inside the profiler: interpose/slow.c defers. Allocation: bucket arrays
 * from LEDGER; when one can't grow, chains get longer.
 */
#ifndef LABELPROF_RECORD_SPECIALS_H
#define LABELPROF_RECORD_SPECIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/region.h"
#include "record/filter.h"

enum special_flag { SPECIAL_ON_BORN_LIST = 1, SPECIAL_FREED = 2 };

struct special {
    uint64_t address;
    uint64_t size_bytes : 48;
    uint64_t lg_factor : 8; /* sampled at sample_bytes << lg_factor */
    uint64_t flags : 4;
    uint64_t born_stage : 2;
    uint64_t freed_stage : 2;
    region_ref next_in_bucket;
    region_ref next_on_list;
    region_ref record;
    uint32_t reserved;
};
_Static_assert(sizeof(struct special) == 32, "two to a cache line");

struct stripe {
    struct lock lock;
    region_ref born, freed;
    uint32_t n_events; /* on both lists */
    region_ref buckets;
    uint32_t lg_buckets;
    uint32_t n_specials;
    uint8_t bit_counts[(1u << FILTER_LG_BITS) / STRIPES]; /* specials per filter bit, saturating */
} __attribute__((aligned(64)));

bool specials_open(void);
struct stripe *specials_stripe(unsigned index);

/* Every call that makes an event says in *ret_events how many wait on the stripe it touched, and in
 * the special's address which stripe that is: past SWEEP_AT the caller sweeps (cycle_assist). */
enum { SWEEP_AT = 256 };

/* Publishes a special whose address, size, lg_factor and record are set; reads the cycle. False: the
 * table could not be made; nothing happened. */
bool specials_insert(struct special *special, uint32_t *ret_events);

/* Ends the sample of this address, if there is one. */
bool specials_free(const void *address, uint32_t *ret_events);

/* Takes the special of this address off the table; NULL: none. The caller then either ends it
 * (specials_end, specials_replace) or puts it back (specials_reattach); nobody else can find it
 * meanwhile. */
struct special *specials_detach(const void *address);
void specials_reattach(struct special *special);
void specials_end(struct special *special, uint32_t *ret_events);
/* One instant for both halves of a realloc: `ended` ends and `born` is inserted in one cycle. False:
 * `born` could not be inserted; `ended` has ended all the same. */
bool specials_replace(struct special *ended, struct special *born, uint32_t *ret_events);

/* A process begins: in a child of fork the bits are its parent's, and become the inherited ones. */
void specials_reset_filter(void);

#endif
