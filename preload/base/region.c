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
    size_t open_bytes;  /* usable so far, a multiple of OPEN_STEP_BYTES; atomic */
} regions[REGION_COUNT]; /* written by region_open and region_fix, before anybody else reads */

enum { HEAD_BYTES = 64, GRAIN_BYTES = 16, LINE_BYTES = 64, OPEN_STEP_BYTES = 1 << 20 };

static struct region_head *head_of(enum region region)
{
    return (struct region_head *)regions[region].start;
}

/* Memory is opened step by step, so that mlockall and strict overcommit count what is used. Threads
 * that do it at once open the same or more. */
static bool open_up_to(enum region region, size_t limit_bytes)
{
    size_t open_bytes = __atomic_load_n(&regions[region].open_bytes, __ATOMIC_RELAXED);
    if (likely(limit_bytes <= open_bytes))
        return true;
    size_t wanted = round_up(limit_bytes, OPEN_STEP_BYTES);
    wanted = wanted < regions[region].size_bytes ? wanted : regions[region].size_bytes;
    if (!sys_open(regions[region].start, wanted))
        return false;
    while (open_bytes < wanted &&
           !__atomic_compare_exchange_n(&regions[region].open_bytes, &open_bytes, wanted, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return true;
}

static bool reserve(enum region region, size_t bytes)
{
    unsigned char *start = sys_reserve(bytes);
    if (!start)
        return false;
    sys_no_huge_pages(start, bytes);
    regions[region].start = start;
    regions[region].size_bytes = bytes;
    regions[region].fixed_bytes = HEAD_BYTES;
    regions[region].open_bytes = 0;
    if ((region != REGION_LEDGER || sys_wipe_on_fork(start, bytes)) && open_up_to(region, HEAD_BYTES))
        return true;
    sys_unmap(start, bytes);
    return false;
}

bool region_open(size_t ledger_bytes, size_t keep_bytes)
{
    if (!reserve(REGION_KEEP, round_up(keep_bytes, PAGE_BYTES)))
        return false;
    if (reserve(REGION_LEDGER, round_up(ledger_bytes, PAGE_BYTES)))
        return true;
    sys_unmap(regions[REGION_KEEP].start, regions[REGION_KEEP].size_bytes);
    return false;
}

void region_keep_on_fork(bool is_kept)
{
    void *start = regions[REGION_LEDGER].start;
    if (is_kept)
        sys_keep_on_fork(start, regions[REGION_LEDGER].size_bytes);
    else
        sys_wipe_on_fork(start, regions[REGION_LEDGER].size_bytes);
}

void region_wipe(void)
{
    sys_wipe(regions[REGION_LEDGER].start, regions[REGION_LEDGER].size_bytes);
}

void *region_fix(enum region region, size_t bytes)
{
    size_t from = regions[region].fixed_bytes;
    size_t want = round_up(bytes, LINE_BYTES);
    if (want > regions[region].size_bytes - from || !open_up_to(region, from + want))
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
    /* What can't be opened is spent all the same: a budget too large for the machine's. */
    return open_up_to(region, from + want) ? regions[region].start + from : NULL;
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
