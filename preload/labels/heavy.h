/* SPDX-License-Identifier: MIT
 * Which label sets allocate most, among those too many to count each: a space-saving sketch.
 *
 * Counters stand in buckets of HEAVY_WAYS; a set's hash names its bucket. A set that has no counter
 * takes over the smallest of its bucket, with that counter's value as its possible error. So for each
 * set with a counter   count - error <= what it allocated <= count,   and a set that allocated more
 * than a HEAVY_WAYS-th of its bucket's total has one (Metwally, Agrawal, El Abbadi: "Efficient
 * computation of frequent and top-k elements in data streams", 2005; here per bucket).
 *
 * A set is *proven* when count - error is at least 1/n_places of all that was added, and enough was
 * added for that to mean something (HEAVY_SAMPLES_A_PLACE samples a place).
 * Threads: under the book lock. Memory: fixed, in LEDGER.
 */
#ifndef LABELPROF_LABELS_HEAVY_H
#define LABELPROF_LABELS_HEAVY_H

#include <stdbool.h>
#include <stdint.h>

enum { HEAVY_WAYS = 8, HEAVY_SAMPLES_A_PLACE = 16 };

bool heavy_open(void);

/* One sample of a set: `bytes` is what the sample stands for. True: it is proven by now. */
bool heavy_add(uint32_t hash, uint64_t bytes, uint64_t n_places);

#endif
