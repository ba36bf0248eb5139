/* SPDX-License-Identifier: MIT */
#include "labels/sources.h"

#include <link.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/thread.h"
#include "labels/process_context.h"
#include "labels/readable.h"
#include "labels/sites.h"

enum {
    UNLOAD_WAIT_NS = 50 * 1000,
    UNLOAD_WAITS = 20000, /* a second: a reader takes microseconds, unless it is starved */
};

static struct unloads {
    uint32_t n_reading; /* atomic: threads between begin and end */
    uint32_t n_closing; /* atomic: dlcloses under way */
} *unloads; /* in LEDGER: none in the child of fork */

static struct wishes {
    uint32_t scan;    /* atomic, relaxed: sources_wish_scan */
    uint32_t is_told; /* atomic, relaxed: the flusher has been woken for what is wanted now */
} *wishes; /* in LEDGER */

bool sources_open(void)
{
    unloads = region_fix(REGION_LEDGER, sizeof *unloads);
    wishes = region_fix(REGION_LEDGER, sizeof *wishes);
    return unloads && wishes && sites_open() && readable_open() && process_context_open();
}

static bool is_on(void)
{
    return options.label_sources & (LABEL_SOURCE_OTEL | LABEL_SOURCE_CUSTOM);
}

/* ---- reading ---- */

bool sources_begin(void)
{
    if (likely(!sites_are_any()))
        return false;
    /* Sequentially consistent, as n_closing's: either dlclose sees this reader and waits, or the
     * reader sees the dlclose and passes what may go. */
    __atomic_fetch_add(&unloads->n_reading, 1, __ATOMIC_SEQ_CST);
    return true;
}

void sources_end(void)
{
    /* None in a child that a handler forked meanwhile. Release pairs with wait_for_readers. */
    if (likely(__atomic_load_n(&unloads->n_reading, __ATOMIC_RELAXED) != 0))
        __atomic_fetch_sub(&unloads->n_reading, 1, __ATOMIC_RELEASE);
}

static bool read_site(const struct site *site, struct source_reading *reading)
{
    if (site->is_unloadable && __atomic_load_n(&unloads->n_closing, __ATOMIC_SEQ_CST))
        return false;
    uintptr_t slot = slot_find(&site->place, &reading->n_probes_left);
    return slot && source_providers[site->provider].read(slot, reading);
}

void sources_read(uint64_t source, struct source_reading *reading)
{
    struct site site;
    if (!(options.label_sources & source))
        return;
    for (uint64_t i = 0; sites_get(i, &site); i++)
        if (source_providers[site.provider].source == source && read_site(&site, reading))
            return;
}

static bool wants_scan(void)
{
    return is_on() && (sites_want_scan() || __atomic_load_n(&wishes->scan, __ATOMIC_RELAXED));
}

bool sources_want_refresh(void)
{
    return unlikely(wants_scan()) || process_context_is_wanted();
}

bool sources_take_wish(void)
{
    return ((is_on() && sites_want_scan()) || (process_context_is_wanted() && process_context_is_time())) &&
           !__atomic_exchange_n(&wishes->is_told, 1, __ATOMIC_RELAXED);
}

bool sources_refresh(bool is_alone)
{
    if (!is_on())
        return false;
    bool is_scan_due = !is_alone || wants_scan();
    __atomic_store_n(&wishes->scan, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&wishes->is_told, 0, __ATOMIC_RELAXED);
    bool is_new = is_scan_due && sites_scan();
    return process_context_refresh(is_alone) || is_new;
}

bool sources_may_scan_under(uintptr_t caller)
{
    return is_on() && _r_debug.r_state == RT_CONSISTENT &&
           !sites_is_in_loader(caller);
}

void sources_wish_scan(void)
{
    __atomic_store_n(&wishes->scan, 1, __ATOMIC_RELAXED);
}

void sources_new_cycle(void)
{
    readable_forget();
    process_context_new_cycle();
}

/* ---- unloading ---- */

/* A reader in a frame below (dlclose in a signal handler) would wait for itself. */
static void wait_for_readers(void)
{
    for (int i = 0; i < UNLOAD_WAITS && thread_self.depth == 0; i++) {
        /* It acquires, too: pairs with the release in sources_end, done with what may go. */
        uint32_t n_reading = __atomic_load_n(&unloads->n_reading, __ATOMIC_SEQ_CST);
        if (n_reading == 0)
            return;
        sys_futex_wait(&unloads->n_reading, n_reading, UNLOAD_WAIT_NS);
    }
}

void sources_before_unload(void)
{
    if (!is_on())
        return;
    __atomic_fetch_add(&unloads->n_closing, 1, __ATOMIC_SEQ_CST);
    wait_for_readers();
}

void sources_after_unload(void)
{
    if (!is_on())
        return;
    readable_forget();
    sites_scan();
    /* None in a child that was forked meanwhile. Release: a reader that sees it sees the new list. */
    if (__atomic_load_n(&unloads->n_closing, __ATOMIC_RELAXED))
        __atomic_fetch_sub(&unloads->n_closing, 1, __ATOMIC_RELEASE);
}
