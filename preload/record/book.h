/* SPDX-License-Identifier: MIT
 * The book: stacks, label sets, records and the pool of specials, under one lock; and the counts
 * of what was sampled and what was refused.
 *
 * Near the budget the sampling interval doubles: past 3/4 of the ledger once, and again for every
 * further 1/128: what is left lasts for 2^32 times as many bytes. Samples already live keep the
 * interval they were drawn with.
 * Threads: one lock, held for a few hundred instructions, never over a system call other than its
 * own futex. Signals: not in a handler inside the profiler.
 * Failure: NULL and a count; only starting a sample can be refused.
 */
#ifndef LABELPROF_RECORD_BOOK_H
#define LABELPROF_RECORD_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/specials.h"

enum { LG_FACTOR_MAX = 40 };

struct book_counts {
    uint64_t samples, refused, implied_frees;
};

bool book_open(void);
void book_lock(void);
void book_unlock(void);

struct book_sample {
    const uint64_t *frames;
    unsigned n_frames;
    const unsigned char *labels; /* labels/gather.h */
    size_t n_label_bytes;
    uint64_t address, size_bytes;
    uint8_t lg_factor;
};

/* A special for this sample, entered in its record, not yet on the table. Takes the lock. */
struct special *book_enter(const struct book_sample *sample);
/* Undoes book_enter. Takes the lock. */
void book_withdraw(struct special *special);
/* Gives back a special whose end has been folded. Under the lock. */
void book_release(struct special *special);

/* The interval new gaps are drawn with is sample_bytes << book_lg_factor(). */
uint8_t book_lg_factor(void);

void book_count_refused(void); /* lock-free */
void book_count_implied_free(void);
struct book_counts book_counts(void);

#endif
