/* SPDX-License-Identifier: MIT */
#include "base/region.h"

#include "base/attributes.h"
#include "base/sys.h"

/* `used` lives inside the region, in its first bytes, so that it is wiped together with it. */
struct region_head {
    size_t used_bytes; /* atomic; counts the head itself */
};

static struct {
    unsigned char *start;
    size_t size_bytes;
    size_t fixed_bytes; /* the head and what region_fix gave out */
} regions[REGION_COUNT]; /* written by region_open and region_fix, before anybody else reads */

enum { HEAD_BYTES = 64, GRAIN_BYTES = 16, LINE_BYTES = 64 };

static struct region_head *head_of(enum region region)
{
    return (struct region_head *)regions[region].start;
}

static bool reserve(enum region region, size_t bytes)
{
    unsigned char *start = sys_map(bytes);
    if (!start)
        return false;
    if (region == REGION_LEDGER && !sys_wipe_on_fork(start, bytes)) {
        sys_unmap(start, bytes);
        return false;
    }
    regions[region].start = start;
    regions[region].size_bytes = bytes;
    regions[region].fixed_bytes = HEAD_BYTES;
    return true;
}

bool region_open(size_t ledger_bytes, size_t keep_bytes)
{
    return reserve(REGION_KEEP, round_up(keep_bytes, PAGE_BYTES)) &&
           reserve(REGION_LEDGER, round_up(ledger_bytes, PAGE_BYTES));
}

void *region_fix(enum region region, size_t bytes)
{
    size_t from = regions[region].fixed_bytes;
    size_t want = round_up(bytes, LINE_BYTES);
    if (want > regions[region].size_bytes - from)
        return NULL;
    regions[region].fixed_bytes = from + want;
    return regions[region].start + from;
}

void *region_take(enum region region, size_t bytes)
{
    struct region_head *head = head_of(region);
    size_t want = round_up(bytes, GRAIN_BYTES);
    /* Relaxed: the bytes are handed to nobody else, and they are zero since the kernel made them. */
    size_t used = __atomic_load_n(&head->used_bytes, __ATOMIC_RELAXED);
    size_t from;
    do {
        from = used ? used : regions[region].fixed_bytes;
        if (want < bytes || want > regions[region].size_bytes - from)
            return NULL;
    } while (!__atomic_compare_exchange_n(&head->used_bytes, &used, from + want, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return regions[region].start + from;
}

size_t region_used_bytes(enum region region)
{
    return __atomic_load_n(&head_of(region)->used_bytes, __ATOMIC_RELAXED);
}

size_t region_size_bytes(enum region region)
{
    return regions[region].size_bytes;
}

unsigned region_lg_buckets(size_t share)
{
    size_t n_buckets = regions[REGION_LEDGER].size_bytes / share / sizeof(region_ref);
    return n_buckets > 1 ? 63 - (unsigned)__builtin_clzll(n_buckets) : 0;
}

void *region_at(region_ref ref)
{
    return ref ? regions[REGION_LEDGER].start + (size_t)ref * GRAIN_BYTES : NULL;
}

region_ref region_ref_of(const void *object)
{
    if (!object)
        return 0;
    return (region_ref)((size_t)((const unsigned char *)object - regions[REGION_LEDGER].start) /
                        GRAIN_BYTES);
}
