/* SPDX-License-Identifier: MIT
 * Label sets: interned, counted by the records that use them, forgotten with the last one.
 *
 * Place: between labels/gather (bytes in) and record/records (who counts).
 * A set has a *place* when it may keep allocation totals for good: the first ones seen, and, for the
 * last quarter of max_label_sets, those proven to allocate most (heavy.h), from then on.
 * Any other set books its totals under its `other`: the same labels with "(other)" for the value of
 * each variable one (API, custom-labels, OpenTelemetry). As many sets again may be live without a
 * place; beyond that live objects are `other` too. Others have a reserve of places of their own,
 * OTHER_PLACES; when keys or thread names are unbounded too and it is spent, one last set,
 * {label_set: "(other)"}, takes them all.
 * Threads: all calls under the book lock (record/book.c). Signals: not in a handler inside the
 * profiler. Failure: NULL when the region is spent; the caller refuses the sample.
 */
#ifndef LABELPROF_LABELS_SETS_H
#define LABELPROF_LABELS_SETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/region.h"
#include "labels/gather.h"

enum { OTHER_PLACES = 1024 };

struct label_set {
    region_ref next_in_bucket;
    uint32_t hash;
    uint32_t n_references; /* records that use it; a place holds one more */
    region_ref other;      /* where totals go; 0: here, it has a place */
    uint32_t n_bytes;
    unsigned char bytes[]; /* struct label_head, key, value, ... sorted by key */
};

bool sets_open(void);

/* The set of these bytes, with one reference for the caller. */
struct label_set *sets_get(const unsigned char *bytes, size_t n_bytes);
void sets_put(struct label_set *set);
/* A sample of this set that stands for `bytes` is about to be booked: it may earn a place. */
void sets_weigh(struct label_set *set, uint64_t bytes);
/* {label_set: "(other)"}, with one reference for the caller. */
struct label_set *sets_get_last_resort(void);

static inline struct label_set *sets_total(struct label_set *set)
{
    return set->other ? region_at(set->other) : set;
}

/* Walks the labels of a set; false at the end. */
struct label_cursor {
    const unsigned char *at, *end;
};
struct label_cursor sets_cursor(const struct label_set *set);
bool sets_next(struct label_cursor *cursor, struct label_head *ret_head, const char **ret_key,
               const char **ret_value);

/* As many sets as may be live without a place are remembered. Some may be dead, and go with the next
 * publish. Any lock or none. */
bool sets_are_crowded(void);

uint32_t sets_live_count(void); /* sets remembered now, for comments and tests */
bool sets_did_overflow(void);   /* some set had no place */

#endif
