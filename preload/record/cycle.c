/* SPDX-License-Identifier: MIT */
#include "record/cycle.h"

#include "base/options.h"
#include "record/book.h"
#include "record/records.h"
#include "sample/poisson.h"

static struct cycle {
    uint64_t number;
} *cycle; /* in LEDGER */

bool cycle_open(void)
{
    cycle = region_fix(REGION_LEDGER, sizeof *cycle);
    return cycle != NULL;
}

uint64_t cycle_number(void)
{
    /* Relaxed: under a stripe lock the lock orders it after the advance, see cycle_publish. */
    return __atomic_load_n(&cycle->number, __ATOMIC_RELAXED);
}

unsigned cycle_stage(void)
{
    return (unsigned)(cycle_number() % STAGES);
}

struct estimate {
    int64_t objects, bytes;
};

/* What one sample stands for, in the records' fixed point. The same for its birth and its end. */
static struct estimate estimate_of(const struct special *special)
{
    double weight =
        poisson_weight(special->size_bytes, options.sample_bytes << special->lg_factor);
    return (struct estimate){
        (int64_t)(weight * (1 << LG_OBJECT_UNIT) + 0.5),
        (int64_t)(weight * (double)special->size_bytes * (1 << LG_BYTE_UNIT) + 0.5)};
}

static void fold_birth(struct record *record, struct estimate estimate, unsigned stage)
{
    struct totals *total = records_future(records_total(record), stage);
    total->alloc_objects += estimate.objects;
    total->alloc_bytes += estimate.bytes;
    struct totals *live = records_future(record, stage);
    live->inuse_objects += estimate.objects;
    live->inuse_bytes += estimate.bytes;
}

static void fold_end(struct record *record, struct estimate estimate, unsigned stage)
{
    struct totals *live = records_future(record, stage);
    live->inuse_objects -= estimate.objects;
    live->inuse_bytes -= estimate.bytes;
    record->n_live--;
}

/* The two lists differ in what a special on them still has to tell. */
static void sweep_born(struct special *special)
{
    struct record *record = region_at(special->record);
    struct estimate estimate = estimate_of(special);
    fold_birth(record, estimate, special->born_stage);
    special->flags &= ~SPECIAL_ON_BORN_LIST & 15;
    if (special->flags & SPECIAL_FREED) {
        fold_end(record, estimate, special->freed_stage);
        book_release(special);
    }
}

static void sweep_freed(struct special *special)
{
    fold_end(region_at(special->record), estimate_of(special), special->freed_stage);
    book_release(special);
}

/* Under the book lock. Births are swept inside the stripe's lock too: a free must not mark a special
 * that has just been passed. */
static void sweep(struct stripe *stripe)
{
    lock_take(&stripe->lock);
    struct special *born = region_at(stripe->born), *freed = region_at(stripe->freed);
    stripe->born = stripe->freed = 0;
    stripe->n_events = 0;
    while (born) {
        struct special *next = region_at(born->next_on_list);
        sweep_born(born);
        born = next;
    }
    lock_drop(&stripe->lock);
    while (freed) {
        struct special *next = region_at(freed->next_on_list);
        sweep_freed(freed);
        freed = next;
    }
}

void cycle_publish(void)
{
    unsigned ended = cycle_stage();
    /* Release pairs with the acquire of each stripe's lock below and thereby with every event. */
    __atomic_fetch_add(&cycle->number, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < STRIPES; i++) {
        book_lock();
        sweep(specials_stripe(i));
        book_unlock();
    }
    book_lock();
    records_fold(ended);
    book_unlock();
}

void cycle_assist(uint64_t address)
{
    book_lock();
    sweep(specials_stripe(filter_stripe(filter_hash((void *)address))));
    book_unlock();
}
