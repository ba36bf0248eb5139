/* SPDX-License-Identifier: MIT */
#include "record/book.h"

#include "base/attributes.h"
#include "base/options.h"
#include "base/pool.h"
#include "labels/sets.h"
#include "record/records.h"
#include "record/stacks.h"
#include "sample/poisson.h"

static struct book {
    struct lock lock;
    struct pool specials;
    uint8_t lg_factor;        /* atomic, relaxed: any recent value is right */
    struct book_counts counts; /* atomic, relaxed: counters */
} *book; /* in LEDGER */

bool book_open(void)
{
    book = region_fix(REGION_LEDGER, sizeof *book);
    return book && stacks_open() && sets_open() && records_open() && specials_open();
}

void book_lock(void)
{
    lock_take(&book->lock);
}

void book_unlock(void)
{
    lock_drop(&book->lock);
}

uint8_t book_lg_factor(void)
{
    return __atomic_load_n(&book->lg_factor, __ATOMIC_RELAXED);
}

/* Called when the ledger has just grown or refused to. */
static void ease_pressure(void)
{
    size_t size = region_size_bytes(REGION_LEDGER), used = region_used_bytes(REGION_LEDGER);
    size_t threshold = size / 4 * 3;
    if (used <= threshold)
        return;
    size_t steps = 1 + (used - threshold) / (size / 128);
    while (steps > book->lg_factor && book->lg_factor < LG_FACTOR_MAX &&
           options.sample_bytes << book->lg_factor < UINT64_C(1) << 40)
        __atomic_store_n(&book->lg_factor, (uint8_t)(book->lg_factor + 1), __ATOMIC_RELAXED);
}

/* How near the end of the ledger: past 7/8 no new kind of record is begun, past 15/16 none but one. */
enum tightness { ROOMY, TIGHT, FULL };

static enum tightness tightness(void)
{
    size_t size = region_size_bytes(REGION_LEDGER), used = region_used_bytes(REGION_LEDGER);
    return used <= size / 8 * 7 ? ROOMY : used <= size / 16 * 15 ? TIGHT : FULL;
}

/* The sample's set, with a reference; it may have earned a place by this very sample. */
static struct label_set *set_of(const struct book_sample *sample)
{
    struct label_set *set = sets_get(sample->labels, sample->n_label_bytes);
    if (set && set->other) {
        double weight =
            poisson_weight(sample->size_bytes, options.sample_bytes << sample->lg_factor);
        sets_weigh(set, (uint64_t)(weight * (double)sample->size_bytes));
    }
    return set;
}

static struct record *find_record(struct label_set *set, const struct book_sample *sample)
{
    struct stack *stack = stacks_get(sample->frames, sample->n_frames);
    return stack ? records_get(stack, set, stacks_size_label(stack, sample->size_bytes)) : NULL;
}

/* What has a record goes on; the rest shares "[other stacks]", so that what is left of the ledger
 * goes to samples. */
static COLD struct record *find_record_when_tight(struct label_set *set,
                                                  const struct book_sample *sample, bool is_full)
{
    struct stack *stack = stacks_find(sample->frames, sample->n_frames);
    struct record *record =
        stack ? records_get_known(stack, set, stacks_size_label(stack, sample->size_bytes)) : NULL;
    struct stack *other = record ? NULL : stacks_other();
    if (record || !other)
        return record;
    uint64_t size_label = stacks_size_class(sample->size_bytes);
    struct label_set *last = is_full ? sets_get_last_resort() : NULL;
    record = records_get(other, last ? last : set, size_label);
    if (last)
        sets_put(last);
    return record;
}

static struct record *find_record_of(const struct book_sample *sample)
{
    enum tightness now = tightness();
    struct label_set *set = set_of(sample);
    if (!set)
        return NULL;
    struct record *record = likely(now == ROOMY)
                                ? find_record(set, sample)
                                : find_record_when_tight(set, sample, now == FULL);
    sets_put(set); /* the record has its own reference */
    return record;
}

static struct special *enter_locked(const struct book_sample *sample)
{
    struct special *special = pool_get(&book->specials, REGION_LEDGER, sizeof *special);
    if (!special)
        return NULL;
    struct record *record = find_record_of(sample);
    if (!record) {
        pool_put(&book->specials, special);
        return NULL;
    }
    *special = (struct special){.address = sample->address,
                                .size_bytes = sample->size_bytes & ((UINT64_C(1) << 48) - 1),
                                .lg_factor = sample->lg_factor,
                                .record = region_ref_of(record)};
    return special;
}

struct special *book_enter(const struct book_sample *sample)
{
    lock_take(&book->lock);
    struct special *special = enter_locked(sample);
    ease_pressure();
    lock_drop(&book->lock);
    if (special)
        __atomic_fetch_add(&book->counts.samples, 1, __ATOMIC_RELAXED);
    else
        book_count_refused();
    return special;
}

void book_withdraw(struct special *special)
{
    lock_take(&book->lock);
    records_unget(region_at(special->record));
    pool_put(&book->specials, special);
    lock_drop(&book->lock);
    __atomic_fetch_sub(&book->counts.samples, 1, __ATOMIC_RELAXED);
    book_count_refused();
}

void book_release(struct special *special)
{
    pool_put(&book->specials, special);
}

void book_count_refused(void)
{
    __atomic_fetch_add(&book->counts.refused, 1, __ATOMIC_RELAXED);
}

void book_count_implied_free(void)
{
    __atomic_fetch_add(&book->counts.implied_frees, 1, __ATOMIC_RELAXED);
}

struct book_counts book_counts(void)
{
    struct book_counts counts;
    counts.samples = __atomic_load_n(&book->counts.samples, __ATOMIC_RELAXED);
    counts.refused = __atomic_load_n(&book->counts.refused, __ATOMIC_RELAXED);
    counts.implied_frees = __atomic_load_n(&book->counts.implied_frees, __ATOMIC_RELAXED);
    return counts;
}
