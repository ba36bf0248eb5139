/* SPDX-License-Identifier: MIT */
#include "labels/sets.h"

#include <string.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/text.h"
#include "labels/heavy.h"

/* Blocks of 64, 128, ... bytes: a forgotten set's memory serves the next one of its size. */
enum { BLOCK_CLASSES = 10, SMALLEST_BLOCK_BYTES = 64 };

_Static_assert(SMALLEST_BLOCK_BYTES << (BLOCK_CLASSES - 1) >=
                   (int)sizeof(struct label_set) + LABEL_SET_BYTES_MAX,
               "the largest set fits the largest block");

static struct sets {
    struct pool blocks[BLOCK_CLASSES];
    uint32_t n_sets;      /* in the table */
    uint32_t n_places;    /* given to sets as they came */
    uint32_t n_earned;    /* given to sets that proved to allocate most */
    uint32_t n_others;    /* places of the reserve */
    uint32_t n_homeless;  /* live without a place; atomic: sets_are_crowded looks from outside */
    bool did_overflow;
} *sets; /* in LEDGER, under the book lock */

enum { BUCKETS_SHARE = 2048 }; /* of the ledger: one part in so many */
static region_ref *buckets;    /* 1 << lg_buckets of them, in LEDGER */
static unsigned lg_buckets;

/* Enough for every set that may be remembered, too. */
static void choose_buckets(void)
{
    lg_buckets = region_lg_buckets(BUCKETS_SHARE);
    while (lg_buckets < region_lg_buckets(16) &&
           UINT64_C(1) << lg_buckets < options.max_label_sets)
        lg_buckets++;
}

bool sets_open(void)
{
    choose_buckets();
    sets = region_fix(REGION_LEDGER, sizeof *sets);
    buckets = region_fix(REGION_LEDGER, sizeof *buckets << lg_buckets);
    return sets && buckets && heavy_open();
}

/* The last quarter of the places is to be earned. */
static uint32_t places_to_earn(void)
{
    return (uint32_t)options.max_label_sets / 4;
}

static void count_homeless(int change)
{
    __atomic_fetch_add(&sets->n_homeless, (uint32_t)change, __ATOMIC_RELAXED);
}

static unsigned block_class(size_t bytes)
{
    unsigned class = 0;
    while ((size_t)SMALLEST_BLOCK_BYTES << class < bytes)
        class ++;
    return class;
}

static region_ref *bucket_of(uint32_t hash)
{
    return &buckets[hash & ((1u << lg_buckets) - 1)];
}

static struct label_set *find(const unsigned char *bytes, size_t n_bytes, uint32_t hash)
{
    struct label_set *set = region_at(*bucket_of(hash));
    while (set && !(set->hash == hash && set->n_bytes == n_bytes &&
                    memcmp(set->bytes, bytes, n_bytes) == 0))
        set = region_at(set->next_in_bucket);
    return set;
}

static struct label_set *insert(const unsigned char *bytes, size_t n_bytes, uint32_t hash)
{
    size_t size = sizeof(struct label_set) + n_bytes;
    unsigned class = block_class(size);
    struct label_set *set =
        pool_get(&sets->blocks[class], REGION_LEDGER, (size_t)SMALLEST_BLOCK_BYTES << class);
    if (!set)
        return NULL;
    region_ref *bucket = bucket_of(hash);
    *set = (struct label_set){
        .next_in_bucket = *bucket, .hash = hash, .n_bytes = (uint32_t)n_bytes};
    memcpy(set->bytes, bytes, n_bytes);
    *bucket = region_ref_of(set);
    sets->n_sets++;
    return set;
}

static void forget(struct label_set *set)
{
    region_ref *link = bucket_of(set->hash);
    while (region_at(*link) != set)
        link = &((struct label_set *)region_at(*link))->next_in_bucket;
    *link = set->next_in_bucket;
    sets->n_sets--;
    pool_put(&sets->blocks[block_class(sizeof *set + set->n_bytes)], set);
}

struct label_cursor sets_cursor(const struct label_set *set)
{
    return (struct label_cursor){set->bytes, set->bytes + set->n_bytes};
}

bool sets_next(struct label_cursor *cursor, struct label_head *head, const char **key,
               const char **value)
{
    if (cursor->at == cursor->end)
        return false;
    memcpy(head, cursor->at, sizeof *head);
    *key = (const char *)cursor->at + sizeof *head;
    *value = *key + head->key_bytes;
    cursor->at = (const unsigned char *)*value + head->value_bytes;
    return true;
}

static const char other_value[] = "(other)";

static unsigned char *put_text_label(unsigned char *at, const char *key, size_t key_bytes,
                                     bool is_variable)
{
    struct label_head head = {.kind = LABEL_TEXT,
                              .is_variable = is_variable,
                              .key_bytes = (uint8_t)key_bytes,
                              .value_bytes = sizeof other_value - 1};
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, key, key_bytes);
    memcpy(at + sizeof head + key_bytes, other_value, sizeof other_value - 1);
    return at + sizeof head + key_bytes + sizeof other_value - 1;
}

/* The same labels with "(other)" for each variable value. */
static size_t make_other(const struct label_set *set, unsigned char *out)
{
    struct label_cursor cursor = sets_cursor(set);
    struct label_head head;
    const char *key, *value;
    unsigned char *at = out;
    for (const unsigned char *from = cursor.at; sets_next(&cursor, &head, &key, &value);
         from = cursor.at) {
        if (head.is_variable) {
            at = put_text_label(at, key, head.key_bytes, true);
        } else {
            memcpy(at, from, (size_t)(cursor.at - from));
            at += cursor.at - from;
        }
    }
    return (size_t)(at - out);
}

/* An `other`: kept for good once made, so totals never move. `limit` is on their number. The set
 * that asks may be its own `other`: then it is on the table already, with no reference yet. */
static struct label_set *get_other(const unsigned char *bytes, size_t n_bytes, uint32_t limit)
{
    uint32_t hash = (uint32_t)hash_bytes(bytes, n_bytes);
    struct label_set *other = find(bytes, n_bytes, hash);
    if (other && other->other) /* it came when the reserve was spent */
        return NULL;
    if (other && other->n_references)
        return other;
    if (sets->n_others >= limit)
        return NULL;
    if (!other)
        other = insert(bytes, n_bytes, hash);
    if (!other)
        return NULL;
    other->n_references = 1; /* its place */
    sets->n_others++;
    return other;
}

static struct label_set *last_resort(void)
{
    static const char key[] = "label_set";
    unsigned char bytes[LABEL_BYTES_MAX];
    size_t n_bytes = (size_t)(put_text_label(bytes, key, sizeof key - 1, false) - bytes);
    return get_other(bytes, n_bytes, OTHER_PLACES + 1);
}

static struct label_set *other_of(const struct label_set *set, unsigned char *scratch)
{
    struct label_set *other = get_other(scratch, make_other(set, scratch), OTHER_PLACES);
    return other ? other : last_resort();
}

/* Decides, once, where a new set's totals are booked. False: no memory. */
static bool settle(struct label_set *set, unsigned char *scratch)
{
    if (set->n_bytes == 0 || sets->n_places < options.max_label_sets - places_to_earn()) {
        sets->n_places += set->n_bytes != 0;
        set->n_references = 1;
        return true;
    }
    struct label_set *other = other_of(set, scratch);
    if (!other)
        return false;
    sets->did_overflow = true;
    if (other == set) /* nothing in it varies, or it is the program's own "(other)" */
        return true;
    set->other = region_ref_of(other);
    count_homeless(1);
    return true;
}

struct label_set *sets_get(const unsigned char *bytes, size_t n_bytes)
{
    uint32_t hash = (uint32_t)hash_bytes(bytes, n_bytes);
    struct label_set *set = find(bytes, n_bytes, hash);
    if (!set) {
        /* `other` is never longer than LABEL_SET_BYTES_MAX: keys stay, values are 7 bytes. */
        static unsigned char scratch[LABEL_SET_BYTES_MAX + LABEL_BYTES_MAX];
        set = insert(bytes, n_bytes, hash);
        if (!set)
            return NULL;
        if (!settle(set, scratch)) {
            forget(set);
            return NULL;
        }
        if (set->other && sets->n_homeless > options.max_label_sets) {
            struct label_set *other = region_at(set->other);
            count_homeless(-1);
            forget(set);
            set = other;
        }
    }
    set->n_references++;
    return set;
}

void sets_weigh(struct label_set *set, uint64_t bytes)
{
    if (!set->other || sets->n_earned == places_to_earn() ||
        !heavy_add(set->hash, bytes, places_to_earn()))
        return;
    set->other = 0; /* what it allocated before stays where it was booked */
    set->n_references++;
    count_homeless(-1);
    sets->n_earned++;
}

struct label_set *sets_get_last_resort(void)
{
    struct label_set *set = last_resort();
    if (set)
        set->n_references++;
    return set;
}

void sets_put(struct label_set *set)
{
    if (--set->n_references > 0)
        return;
    if (set->other)
        count_homeless(-1);
    forget(set);
}

bool sets_are_crowded(void)
{
    /* Relaxed: a hint, see flusher_tick. */
    return __atomic_load_n(&sets->n_homeless, __ATOMIC_RELAXED) >= options.max_label_sets;
}

uint32_t sets_live_count(void)
{
    return sets->n_sets;
}

bool sets_did_overflow(void)
{
    return sets->did_overflow;
}
