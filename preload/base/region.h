/* SPDX-License-Identifier: MIT
 * Private memory: where everything the profiler remembers lives. The program's heap is never used.
 *
 * Two regions, both address space reserved once and opened step by step:
 *   LEDGER  samples, stacks, label sets, records. The child of fork finds it zeroed
 *           (MADV_WIPEONFORK), and zero is its valid empty state.
 *   KEEP    what stays true in a child: threads and their labels, unwind rules, modules.
 *
 * region_take only ever grows; who frees keeps a free list of its own (pools), so that a record
 * of one kind never turns into another.
 * Threads: thread-safe. Signals: not from a handler whose thread is inside the profiler.
 * Failure: NULL when the budget (LABELPROF_MAX_MEMORY) is spent; the caller refuses and counts.
 */
#ifndef LABELPROF_BASE_REGION_H
#define LABELPROF_BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum region { REGION_LEDGER, REGION_KEEP, REGION_COUNT };

/* Reserve both. Called once per process image, before the first region_take. False: no memory. */
bool region_open(size_t ledger_bytes, size_t keep_bytes);

/* For a fork whose own thread is inside the profiler: its child must be able to finish what it is
 * doing before it starts afresh (region_wipe). */
void region_keep_on_fork(bool is_kept);
/* LEDGER is empty again, as in a child of fork. */
void region_wipe(void);

/* A place at a fixed address, for tables that must be found again: in the child of fork it is at
 * the same address, zeroed (LEDGER) or as it was (KEEP). Only between region_open and the first
 * region_take. Locks live in LEDGER, also those that guard KEEP: the child finds them free. NULL:
 * spent. */
void *region_fix(enum region region, size_t bytes);

/* `bytes` zeroed bytes, aligned to 16. NULL: spent. */
void *region_take(enum region region, size_t bytes);

size_t region_used_bytes(enum region region);
size_t region_size_bytes(enum region region);

/* For a hash table that takes about 1/share of the LEDGER: the power of two of its buckets. */
unsigned region_lg_buckets(size_t share);

/* LEDGER objects are named by 32-bit references (offset / 16; 0 is "none"): half the size of a
 * pointer, and still right when the region is mapped again for `labelprof recover`. */
typedef uint32_t region_ref;
void *region_at(region_ref ref);
region_ref region_ref_of(const void *object);

#endif
