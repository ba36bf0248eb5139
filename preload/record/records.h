/* SPDX-License-Identifier: MIT
 * The totals: one record per (stack, label set, size label), with what is published and what is
 * still gathering.
 *
 *   active     the published cut: every event of cycles <= the published one, none later
 *   future[c mod 3]  events of cycle c, gathered while c or c+1 runs, folded into active when c+1
 *              has been passed by every stripe (record/cycle.h); zero again before c+3 begins
 *
 * Invariants: active.alloc_* never shrinks; active.inuse_* >= 0; n_live = samples not yet folded
 * away; a record of a set without a place goes when n_live = 0 and every future is zero.
 * Threads: under the book lock, but for `active` of a record that is not all zero, which only the
 * holder of the publish lock writes, so that holder reads it without the book lock.
 * Failure: NULL when the region is spent.
 */
#ifndef LABELPROF_RECORD_RECORDS_H
#define LABELPROF_RECORD_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

struct label_set;
struct stack;

/* Fixed point: objects in 2^-12, bytes in 2^-8 of one. An object at T = 1 is exact. 2^51 objects or
 * 2^55 bytes (at 10 GB/s, 41 days) of one record fit. */
enum { LG_OBJECT_UNIT = 12, LG_BYTE_UNIT = 8, STAGES = 3 };

struct totals {
    int64_t alloc_objects, alloc_bytes;
    int64_t inuse_objects, inuse_bytes; /* in future[]: the change, may be negative */
};

struct record {
    region_ref next_in_bucket;
    region_ref stack, set;
    region_ref total; /* the record that books the allocations; 0: this one */
    uint64_t size_label;
    uint32_t n_live;
    uint32_t dirty_stages; /* bit s: on the dirty list of stage s */
    region_ref next_dirty[STAGES];
    uint32_t hash;
    struct totals active;
    struct totals future[STAGES];
} __attribute__((aligned(16))); /* a region_ref can only name a multiple of 16 */

bool records_open(void);

/* The record for one new live sample; n_live is counted up. */
struct record *records_get(struct stack *stack, struct label_set *set, uint64_t size_label);
/* The same, only if it is there already; else NULL. */
struct record *records_get_known(struct stack *stack, struct label_set *set, uint64_t size_label);
/* Undoes records_get for a sample that never came to be. */
void records_unget(struct record *record);

struct record *records_total(struct record *record);
/* Where events of `stage` gather; puts the record on that stage's dirty list. */
struct totals *records_future(struct record *record, unsigned stage);

/* Adds future[stage] to active for every dirty record, and drops records that are done. Under the
 * publish and the book lock. */
void records_fold(unsigned stage);
/* No event has gathered in this stage. */
bool records_stage_is_empty(unsigned stage);

/* Walks all records in chunks: *cursor starts at 0; NULL at the end. Under the publish lock. */
struct record *records_next(uint64_t *cursor);

uint32_t records_count(void);
#endif
