/* SPDX-License-Identifier: MIT */
#include "record/records.h"

#include "base/pool.h"
#include "labels/sets.h"
#include "record/stacks.h"

enum { RECORDS_A_CHUNK = 256 };

/* Records live in chunks so that the publisher can walk them without chasing chains that change. */
struct chunk {
    region_ref next; /* written once, with release; pairs with records_next */
    struct record records[RECORDS_A_CHUNK];
};

static struct records {
    region_ref first_chunk;
    region_ref last_chunk;
    uint32_t n_in_last;
    uint32_t n_records;
    struct pool free; /* single records given back */
    region_ref dirty[STAGES];
} *records; /* in LEDGER, under the book lock */

enum { BUCKETS_SHARE = 256 }; /* of the ledger: one part in so many */
static region_ref *buckets; /* 1 << lg_buckets of them, in LEDGER */
static unsigned lg_buckets;

bool records_open(void)
{
    lg_buckets = region_lg_buckets(BUCKETS_SHARE);
    records = region_fix(REGION_LEDGER, sizeof *records);
    buckets = region_fix(REGION_LEDGER, sizeof *buckets << lg_buckets);
    return records && buckets;
}

static uint32_t hash_of(region_ref stack, region_ref set, uint64_t size_label)
{
    uint64_t mixed = ((uint64_t)stack << 32 | set) ^ size_label * UINT64_C(0x9E3779B97F4A7C15);
    mixed *= UINT64_C(0xFF51AFD7ED558CCD);
    return (uint32_t)(mixed >> 32);
}

static region_ref *bucket_of(uint32_t hash)
{
    return &buckets[hash & ((1u << lg_buckets) - 1)];
}

static struct chunk *new_chunk(void)
{
    struct chunk *chunk = region_take(REGION_LEDGER, sizeof *chunk);
    if (!chunk)
        return NULL;
    struct chunk *last = region_at(records->last_chunk);
    region_ref *link = last ? &last->next : &records->first_chunk;
    /* Pairs with the acquire in records_next: the chunk's zeroes come with it. */
    __atomic_store_n(link, region_ref_of(chunk), __ATOMIC_RELEASE);
    records->last_chunk = region_ref_of(chunk);
    records->n_in_last = 0;
    return chunk;
}

static struct record *take_record(void)
{
    if (records->free.free)
        return pool_get(&records->free, REGION_LEDGER, sizeof(struct record));
    struct chunk *chunk = region_at(records->last_chunk);
    if (!chunk || records->n_in_last == RECORDS_A_CHUNK)
        chunk = new_chunk();
    return chunk ? &chunk->records[records->n_in_last++] : NULL;
}

static void drop(struct record *record)
{
    region_ref *link = bucket_of(record->hash);
    while (region_at(*link) != record)
        link = &((struct record *)region_at(*link))->next_in_bucket;
    *link = record->next_in_bucket;
    sets_put(region_at(record->set));
    records->n_records--;
    pool_put(&records->free, record);
}

static struct record *find(region_ref stack, region_ref set, uint64_t size_label, uint32_t hash)
{
    struct record *record = region_at(*bucket_of(hash));
    while (record &&
           !(record->stack == stack && record->set == set && record->size_label == size_label))
        record = region_at(record->next_in_bucket);
    return record;
}

static struct record *insert(struct stack *stack, struct label_set *set, uint64_t size_label,
                             uint32_t hash)
{
    struct record *record = take_record();
    if (!record)
        return NULL;
    /* The rest is zero, from the kernel or since the last fold; a publisher may look at `active`. */
    record->stack = region_ref_of(stack);
    record->set = region_ref_of(set);
    record->size_label = size_label;
    record->hash = hash;
    record->next_in_bucket = *bucket_of(hash);
    *bucket_of(hash) = region_ref_of(record);
    set->n_references++;
    records->n_records++;
    return record;
}

static struct record *find_or_insert(struct stack *stack, struct label_set *set,
                                     uint64_t size_label, bool may_insert)
{
    region_ref stack_ref = region_ref_of(stack), set_ref = region_ref_of(set);
    uint32_t hash = hash_of(stack_ref, set_ref, size_label);
    struct record *record = find(stack_ref, set_ref, size_label, hash);
    return record || !may_insert ? record : insert(stack, set, size_label, hash);
}

static struct record *get(struct stack *stack, struct label_set *set, uint64_t size_label,
                          bool may_insert)
{
    struct label_set *total_set = sets_total(set);
    struct record *total = find_or_insert(stack, total_set, size_label, may_insert);
    struct record *record =
        total_set == set ? total : find_or_insert(stack, set, size_label, may_insert);
    if (!total || !record)
        return NULL;
    record->total = record == total ? 0 : region_ref_of(total);
    record->n_live++;
    return record;
}

struct record *records_get(struct stack *stack, struct label_set *set, uint64_t size_label)
{
    return get(stack, set, size_label, true);
}

struct record *records_get_known(struct stack *stack, struct label_set *set, uint64_t size_label)
{
    return get(stack, set, size_label, false);
}

static bool is_done(const struct record *record)
{
    const struct label_set *set = region_at(record->set);
    return record->n_live == 0 && record->dirty_stages == 0 && set->other != 0;
}

void records_unget(struct record *record)
{
    record->n_live--;
    if (is_done(record))
        drop(record);
}

struct record *records_total(struct record *record)
{
    return record->total ? region_at(record->total) : record;
}

struct totals *records_future(struct record *record, unsigned stage)
{
    if (!(record->dirty_stages & 1u << stage)) {
        record->dirty_stages |= 1u << stage;
        record->next_dirty[stage] = records->dirty[stage];
        records->dirty[stage] = region_ref_of(record);
    }
    return &record->future[stage];
}

static void fold_record(struct record *record, unsigned stage)
{
    struct totals *from = &record->future[stage], *to = &record->active;
    to->alloc_objects += from->alloc_objects;
    to->alloc_bytes += from->alloc_bytes;
    to->inuse_objects += from->inuse_objects;
    to->inuse_bytes += from->inuse_bytes;
    *from = (struct totals){0, 0, 0, 0};
    record->dirty_stages &= ~(1u << stage);
}

void records_fold(unsigned stage)
{
    struct record *record = region_at(records->dirty[stage]);
    records->dirty[stage] = 0;
    while (record) {
        struct record *next = region_at(record->next_dirty[stage]);
        fold_record(record, stage);
        if (is_done(record))
            drop(record);
        record = next;
    }
}

bool records_stage_is_empty(unsigned stage)
{
    return records->dirty[stage] == 0;
}

struct record *records_next(uint64_t *cursor)
{
    /* The cursor is the chunk's reference and the index in it. */
    region_ref chunk_ref = (region_ref)(*cursor >> 32);
    uint32_t index = (uint32_t)*cursor;
    if (*cursor == 0)
        chunk_ref = __atomic_load_n(&records->first_chunk, __ATOMIC_ACQUIRE);
    struct chunk *chunk = region_at(chunk_ref);
    if (chunk && index == RECORDS_A_CHUNK) {
        /* Pairs with the release in new_chunk. */
        chunk_ref = __atomic_load_n(&chunk->next, __ATOMIC_ACQUIRE);
        chunk = region_at(chunk_ref);
        index = 0;
    }
    if (!chunk)
        return NULL;
    *cursor = (uint64_t)chunk_ref << 32 | (index + 1);
    return &chunk->records[index];
}

uint32_t records_count(void)
{
    return records->n_records;
}
