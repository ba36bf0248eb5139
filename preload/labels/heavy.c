/* SPDX-License-Identifier: MIT */
#include "labels/heavy.h"

#include "base/options.h"
#include "base/region.h"

struct counter {
    uint32_t hash;
    uint64_t bytes, error_bytes;
};

static struct heavy {
    uint64_t total_bytes, n_samples;
} *heavy; /* in LEDGER, under the book lock */

enum { COUNTERS_SHARE = 64 }; /* of the ledger at most: one part in so many */
static struct counter *counters; /* HEAVY_WAYS << lg_buckets of them, in LEDGER */
static unsigned lg_buckets;

/* As many counters as places in all: four for each that a proven set may have. */
bool heavy_open(void)
{
    uint64_t limit = region_size_bytes(REGION_LEDGER) / COUNTERS_SHARE / sizeof *counters;
    uint64_t wanted = options.max_label_sets < limit ? options.max_label_sets : limit;
    lg_buckets = 0;
    while ((UINT64_C(2) * HEAVY_WAYS) << lg_buckets <= wanted)
        lg_buckets++;
    heavy = region_fix(REGION_LEDGER, sizeof *heavy);
    counters = region_fix(REGION_LEDGER, (sizeof *counters * HEAVY_WAYS) << lg_buckets);
    return heavy && counters;
}

/* The set's counter, or the smallest of its bucket. */
static struct counter *counter_of(uint32_t hash)
{
    /* In 64 bits, where a shift by all 32 is defined: one bucket alone has number 0. */
    struct counter *bucket = &counters[((uint64_t)hash >> (32 - lg_buckets)) * HEAVY_WAYS];
    struct counter *smallest = bucket;
    for (int way = 0; way < HEAVY_WAYS; way++) {
        if (bucket[way].bytes && bucket[way].hash == hash)
            return &bucket[way];
        if (bucket[way].bytes < smallest->bytes)
            smallest = &bucket[way];
    }
    return smallest;
}

bool heavy_add(uint32_t hash, uint64_t bytes, uint64_t n_places)
{
    struct counter *counter = counter_of(hash);
    if (counter->hash != hash || !counter->bytes) {
        counter->hash = hash;
        counter->error_bytes = counter->bytes;
    }
    counter->bytes += bytes;
    heavy->total_bytes += bytes;
    heavy->n_samples++;
    return heavy->n_samples >= HEAVY_SAMPLES_A_PLACE * n_places &&
           counter->bytes - counter->error_bytes >= heavy->total_bytes / n_places;
}
