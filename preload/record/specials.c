/* SPDX-License-Identifier: MIT */
#include "record/specials.h"

#include <string.h>

#include "base/attributes.h"
#include "record/book.h"
#include "record/cycle.h"

enum { LG_FIRST_BUCKETS = 4, COUNT_STUCK = 255 };

struct filter filter;

static struct stripe *stripes; /* STRIPES of them, in LEDGER */

bool specials_open(void)
{
    stripes = region_fix(REGION_LEDGER, STRIPES * sizeof *stripes);
    return stripes != NULL;
}

struct stripe *specials_stripe(unsigned index)
{
    return &stripes[index];
}

static struct stripe *stripe_of(uint64_t address)
{
    return &stripes[filter_stripe(filter_hash((void *)address))];
}

/* ---- the filter's bits; under the stripe's lock ---- */

static uint8_t *bit_count(struct stripe *stripe, uint32_t hash)
{
    return &stripe->bit_counts[hash & (sizeof stripe->bit_counts - 1)];
}

static void filter_add(struct stripe *stripe, const struct special *special)
{
    uint32_t hash = filter_hash((void *)special->address);
    uint8_t *count = bit_count(stripe, hash);
    *count += *count != COUNT_STUCK;
    /* Relaxed: see filter.h; the word belongs to this stripe. */
    uint64_t word = filter.bits[hash >> 6] | UINT64_C(1) << (hash & 63);
    __atomic_store_n(&filter.bits[hash >> 6], word, __ATOMIC_RELAXED);
    __atomic_fetch_add(&filter.n_at[filter_place((void *)special->address)], 1, __ATOMIC_RELAXED);
}

/* A count that reached COUNT_STUCK is no longer known: its bit stays, which costs a look-up. */
static void filter_remove(struct stripe *stripe, const struct special *special)
{
    uint32_t hash = filter_hash((void *)special->address);
    uint8_t *count = bit_count(stripe, hash);
    *count -= *count != COUNT_STUCK;
    if (*count == 0)
        __atomic_store_n(&filter.bits[hash >> 6],
                         filter.bits[hash >> 6] & ~(UINT64_C(1) << (hash & 63)), __ATOMIC_RELAXED);
    __atomic_fetch_sub(&filter.n_at[filter_place((void *)special->address)], 1, __ATOMIC_RELAXED);
}

void specials_reset_filter(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(filter.bits); i++) {
        filter.inherited[i] |= filter.bits[i];
        filter.has_inherited |= filter.bits[i] != 0;
    }
    memset(filter.n_at, 0, sizeof filter.n_at);
    memset(filter.bits, 0, sizeof filter.bits);
    filter.n_at[EARLY_PLACE] = filter.n_early;
}

/* ---- the table; under the stripe's lock ---- */

static region_ref *bucket_of(struct stripe *stripe, uint64_t address)
{
    uint64_t mixed = (address >> 3) * UINT64_C(0xC4CEB9FE1A85EC53);
    region_ref *buckets = region_at(stripe->buckets);
    return &buckets[mixed >> (64 - stripe->lg_buckets)];
}

/* Old arrays are not reused: together they are smaller than the one in use. */
static bool grow(struct stripe *stripe)
{
    uint32_t lg_old = stripe->lg_buckets;
    uint32_t lg_new = lg_old ? lg_old + 1 : LG_FIRST_BUCKETS;
    region_ref *new_buckets = region_take(REGION_LEDGER, sizeof(region_ref) << lg_new);
    if (!new_buckets)
        return lg_old != 0;
    region_ref *old_buckets = region_at(stripe->buckets);
    stripe->buckets = region_ref_of(new_buckets);
    stripe->lg_buckets = lg_new;
    for (size_t i = 0; lg_old && i < (size_t)1 << lg_old; i++) {
        struct special *special = region_at(old_buckets[i]);
        while (special) {
            struct special *next = region_at(special->next_in_bucket);
            region_ref *bucket = bucket_of(stripe, special->address);
            special->next_in_bucket = *bucket;
            *bucket = region_ref_of(special);
            special = next;
        }
    }
    return true;
}

/* Near the budget (record/book.h) what is left is for specials: chains grow instead, to about four. */
static bool has_room(struct stripe *stripe)
{
    bool is_loose = stripe->n_specials < UINT32_C(1) << stripe->lg_buckets;
    bool is_spare = region_used_bytes(REGION_LEDGER) < region_size_bytes(REGION_LEDGER) / 4 * 3;
    if (stripe->lg_buckets && (is_loose || !is_spare))
        return true;
    return grow(stripe);
}

static void put_on_table(struct stripe *stripe, struct special *special)
{
    region_ref *bucket = bucket_of(stripe, special->address);
    special->next_in_bucket = *bucket;
    *bucket = region_ref_of(special);
    stripe->n_specials++;
    filter_add(stripe, special);
}

static struct special *take_off_table(struct stripe *stripe, uint64_t address)
{
    if (!stripe->lg_buckets)
        return NULL;
    region_ref *link = bucket_of(stripe, address);
    struct special *special = region_at(*link);
    while (special && special->address != address) {
        link = &special->next_in_bucket;
        special = region_at(*link);
    }
    if (!special)
        return NULL;
    *link = special->next_in_bucket;
    stripe->n_specials--;
    filter_remove(stripe, special);
    return special;
}

/* ---- events; under the stripe's lock, which is what makes the cycle number they read final ---- */

static void record_birth(struct stripe *stripe, struct special *special, unsigned stage)
{
    special->born_stage = stage & 3;
    special->flags = SPECIAL_ON_BORN_LIST;
    special->next_on_list = stripe->born;
    stripe->born = region_ref_of(special);
    stripe->n_events++;
}

static void record_end(struct stripe *stripe, struct special *special, unsigned stage)
{
    special->freed_stage = stage & 3;
    special->flags |= SPECIAL_FREED;
    stripe->n_events++;
    if (special->flags & SPECIAL_ON_BORN_LIST) /* the sweeper will meet it there */
        return;
    special->next_on_list = stripe->freed;
    stripe->freed = region_ref_of(special);
}

/* An address that is on the table already was released through a door we don't know: an implied
 * free, and the table heals. */
static void end_leftover(struct stripe *stripe, uint64_t address, unsigned stage)
{
    struct special *leftover = take_off_table(stripe, address);
    if (!leftover)
        return;
    record_end(stripe, leftover, stage);
    book_count_implied_free();
}

static void insert_locked(struct stripe *stripe, struct special *special, unsigned stage)
{
    end_leftover(stripe, special->address, stage);
    put_on_table(stripe, special);
    record_birth(stripe, special, stage);
}

bool specials_insert(struct special *special, uint32_t *ret_events)
{
    struct stripe *stripe = stripe_of(special->address);
    lock_take(&stripe->lock);
    bool is_done = has_room(stripe);
    if (is_done)
        insert_locked(stripe, special, cycle_stage());
    *ret_events = stripe->n_events;
    lock_drop(&stripe->lock);
    return is_done;
}

struct special *specials_detach(const void *address)
{
    struct stripe *stripe = stripe_of((uint64_t)address);
    lock_take(&stripe->lock);
    struct special *special = take_off_table(stripe, (uint64_t)address);
    lock_drop(&stripe->lock);
    return special;
}

void specials_reattach(struct special *special)
{
    struct stripe *stripe = stripe_of(special->address);
    lock_take(&stripe->lock);
    put_on_table(stripe, special);
    lock_drop(&stripe->lock);
}

void specials_end(struct special *special, uint32_t *ret_events)
{
    struct stripe *stripe = stripe_of(special->address);
    lock_take(&stripe->lock);
    record_end(stripe, special, cycle_stage());
    *ret_events = stripe->n_events;
    lock_drop(&stripe->lock);
}

bool specials_free(const void *address, uint32_t *ret_events)
{
    struct stripe *stripe = stripe_of((uint64_t)address);
    lock_take(&stripe->lock);
    struct special *special = take_off_table(stripe, (uint64_t)address);
    if (special)
        record_end(stripe, special, cycle_stage());
    *ret_events = stripe->n_events;
    lock_drop(&stripe->lock);
    return special != NULL;
}

static void lock_both(struct stripe *a, struct stripe *b)
{
    lock_take(a < b ? &a->lock : &b->lock);
    if (a != b)
        lock_take(a < b ? &b->lock : &a->lock);
}

bool specials_replace(struct special *ended, struct special *born, uint32_t *ret_events)
{
    struct stripe *from = stripe_of(ended->address), *to = stripe_of(born->address);
    lock_both(from, to);
    unsigned stage = cycle_stage();
    bool has_place = has_room(to);
    if (has_place)
        insert_locked(to, born, stage);
    record_end(from, ended, stage);
    *ret_events = to->n_events;
    if (from != to)
        lock_drop(&to->lock);
    lock_drop(&from->lock);
    return has_place;
}
