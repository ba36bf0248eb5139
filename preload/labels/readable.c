/* SPDX-License-Identifier: MIT */
#include "labels/readable.h"

#include "base/attributes.h"
#include "base/region.h"
#include "base/sys.h"

enum { LG_PAGES = 8, EPOCH_SHIFT = 36 }; /* a page number of user space has 35 bits */

static struct readable {
    uint64_t epoch; /* atomic, relaxed: a late look at it trusts a page one call longer */
    uint64_t pages[1 << LG_PAGES]; /* atomic, relaxed: epoch and page in one word */
} *table;                          /* in KEEP */

bool readable_open(void)
{
    table = region_fix(REGION_KEEP, sizeof *table);
    return table != NULL;
}

void readable_forget(void)
{
    __atomic_fetch_add(&table->epoch, 1, __ATOMIC_RELAXED);
}

static bool is_page_readable(uintptr_t page, unsigned *n_probes_left)
{
    uint64_t epoch = __atomic_load_n(&table->epoch, __ATOMIC_RELAXED) + 1; /* 0 is an empty word */
    uint64_t word = epoch << EPOCH_SHIFT | page;
    uint64_t *known = &table->pages[(page * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - LG_PAGES)];
    if (likely(__atomic_load_n(known, __ATOMIC_RELAXED) == word))
        return true;
    if (*n_probes_left == 0)
        return false;
    --*n_probes_left;
    if (!sys_can_read(page * PAGE_BYTES))
        return false;
    __atomic_store_n(known, word, __ATOMIC_RELAXED);
    return true;
}

bool readable(uintptr_t address, size_t n_bytes, unsigned *n_probes_left)
{
    const uintptr_t user_limit = (uintptr_t)1 << 47;
    if (n_bytes == 0)
        return true;
    if (address < PAGE_BYTES || address >= user_limit || n_bytes > user_limit - address)
        return false;
    uintptr_t last = (address + n_bytes - 1) / PAGE_BYTES;
    for (uintptr_t page = address / PAGE_BYTES; page <= last; page++)
        if (!is_page_readable(page, n_probes_left))
            return false;
    return true;
}
