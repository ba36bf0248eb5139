/* SPDX-License-Identifier: MIT */
#include "labels/sites.h"

#include <link.h>
#include <string.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/region.h"
#include "labels/loaded.h"

enum {
    SITES_MAX = 16,
    SITE_TRIES = 8, /* of a list that is replaced under us */
};

const struct source_provider source_providers[] = {
    {"OpenTelemetry thread context", LABEL_SOURCE_OTEL, "otel_thread_ctx_v1", 8, NULL, 0, otel_read},
    {"custom-labels v1", LABEL_SOURCE_CUSTOM, "custom_labels_current_set", 8,
     "custom_labels_abi_version", 1, custom_labels_read_v1},
    {"custom-labels v0", LABEL_SOURCE_CUSTOM, "custom_labels_thread_local_data", 16,
     "custom_labels_abi_version", 0, custom_labels_read_v0},
};
const size_t n_source_providers = ARRAY_LENGTH(source_providers);

struct site_list {
    uint64_t n_adds, n_subs;      /* the loader's counts it was made at; atomic, relaxed */
    uint64_t n_sites;             /* atomic */
    struct site sites[SITES_MAX]; /* in load order; atomic words */
};

static struct sites {
    uint32_t n_flips;  /* atomic: lists[n_flips % 2] is read, the other is the next one's */
    struct site_list lists[2];
    uint64_t generation_floor; /* atomic, relaxed: of dtvs, seen before the latest scan */
    uintptr_t loader_start, loader_limit;
} *sites; /* in KEEP */

static struct lock *publish_lock; /* in LEDGER: free in the child of fork */

bool sites_open(void)
{
    sites = region_fix(REGION_KEEP, sizeof *sites);
    publish_lock = region_fix(REGION_LEDGER, sizeof *publish_lock);
    return sites && publish_lock && slot_open();
}

/* ---- the list: written by the scanner, copied by readers ---- */

static struct site_list *active_list(void)
{
    /* Pairs with the release in publish. */
    return &sites->lists[__atomic_load_n(&sites->n_flips, __ATOMIC_ACQUIRE) % 2];
}

static uint64_t n_changes(const struct site_list *list)
{
    return __atomic_load_n(&list->n_adds, __ATOMIC_RELAXED) +
           __atomic_load_n(&list->n_subs, __ATOMIC_RELAXED);
}

bool sites_are_any(void)
{
    return __atomic_load_n(&active_list()->n_sites, __ATOMIC_RELAXED) != 0;
}

/* Each word acquires: if it is the next list's already, the flip before it is seen too, and the
 * copy is made again. Pairs with the release stores in put_site. */
static void copy_site(struct site *to, const struct site *from)
{
    to->provider = __atomic_load_n(&from->provider, __ATOMIC_ACQUIRE);
    to->is_unloadable = __atomic_load_n(&from->is_unloadable, __ATOMIC_ACQUIRE);
    to->place.module = __atomic_load_n(&from->place.module, __ATOMIC_ACQUIRE);
    to->place.offset = __atomic_load_n(&from->place.offset, __ATOMIC_ACQUIRE);
    to->place.tp_word = __atomic_load_n(&from->place.tp_word, __ATOMIC_ACQUIRE);
    to->place.min_generation = __atomic_load_n(&from->place.min_generation, __ATOMIC_ACQUIRE);
    to->bias = __atomic_load_n(&from->bias, __ATOMIC_ACQUIRE);
}

static void put_site(struct site *to, const struct site *from)
{
    __atomic_store_n(&to->provider, from->provider, __ATOMIC_RELEASE);
    __atomic_store_n(&to->is_unloadable, from->is_unloadable, __ATOMIC_RELEASE);
    __atomic_store_n(&to->place.module, from->place.module, __ATOMIC_RELEASE);
    __atomic_store_n(&to->place.offset, from->place.offset, __ATOMIC_RELEASE);
    __atomic_store_n(&to->place.tp_word, from->place.tp_word, __ATOMIC_RELEASE);
    __atomic_store_n(&to->place.min_generation, from->place.min_generation, __ATOMIC_RELEASE);
    __atomic_store_n(&to->bias, from->bias, __ATOMIC_RELEASE);
}

bool sites_get(uint64_t index, struct site *site)
{
    for (int i = 0; i < SITE_TRIES; i++) {
        uint32_t n_flips = __atomic_load_n(&sites->n_flips, __ATOMIC_ACQUIRE);
        const struct site_list *list = &sites->lists[n_flips % 2];
        bool is_there = index < __atomic_load_n(&list->n_sites, __ATOMIC_ACQUIRE);
        if (is_there)
            copy_site(site, &list->sites[index]);
        if (__atomic_load_n(&sites->n_flips, __ATOMIC_RELAXED) == n_flips)
            return is_there;
    }
    return false;
}

/* ---- scanning ---- */

struct scan {
    struct site_list list;
    bool is_first, is_changed;
};

static bool has_version(const struct loaded *object, const struct source_provider *provider)
{
    if (!provider->version_symbol)
        return true;
    const ElfW(Sym) *symbol = loaded_find(object, provider->version_symbol);
    uintptr_t address = symbol ? object->info->dlpi_addr + symbol->st_value : 0;
    uint32_t version;
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT ||
        symbol->st_size != sizeof version || !loaded_holds(object, address, sizeof version))
        return false;
    memcpy(&version, (const void *)address, sizeof version);
    return version == provider->version;
}

static const ElfW(Sym) *find_slot(const struct loaded *object,
                                  const struct source_provider *provider)
{
    const ElfW(Sym) *symbol = loaded_find(object, provider->symbol);
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_TLS ||
        (symbol->st_size && symbol->st_size != provider->slot_bytes))
        return NULL;
    return has_version(object, provider) ? symbol : NULL;
}

static void add_site(struct scan *scan, const struct loaded *object, size_t provider)
{
    const ElfW(Sym) *symbol = find_slot(object, &source_providers[provider]);
    if (!symbol || scan->list.n_sites == SITES_MAX)
        return;
    scan->list.sites[scan->list.n_sites++] = (struct site){
        .provider = provider,
        .is_unloadable = !scan->is_first,
        .place = {.module = object->info->dlpi_tls_modid,
                  .offset = symbol->st_value,
                  .tp_word = loaded_tls_word(object, symbol)},
        .bias = object->info->dlpi_addr,
    };
}

static void note_loader(const struct dl_phdr_info *info)
{
    if (info->dlpi_addr != _r_debug.r_ldbase)
        return;
    sites->loader_start = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        uintptr_t limit = info->dlpi_addr + load->p_vaddr + load->p_memsz;
        if (load->p_type == PT_LOAD && limit > sites->loader_limit)
            sites->loader_limit = limit;
    }
}

static bool is_known(const struct dl_phdr_info *info)
{
    return n_changes(active_list()) == info->dlpi_adds + info->dlpi_subs;
}

static int look_at_object(struct dl_phdr_info *info, size_t n_bytes, void *context)
{
    struct scan *scan = context;
    struct loaded object;
    (void)n_bytes;
    if (!scan->is_changed) { /* the first of the list */
        if (is_known(info))
            return 1;
        scan->is_changed = true;
        scan->list.n_adds = info->dlpi_adds;
        scan->list.n_subs = info->dlpi_subs;
    }
    if (scan->is_first) {
        slot_compare(info);
        note_loader(info);
    }
    if (info->dlpi_tls_modid && loaded_open(&object, info))
        for (size_t i = 0; i < n_source_providers; i++)
            add_site(scan, &object, i);
    return 0;
}

/* What was known of the same definition stays known. */
static void take_over(struct site *site, const struct site_list *before, uint64_t floor)
{
    site->place.min_generation = site->is_unloadable ? floor + 1 : 0;
    for (uint64_t i = 0; i < before->n_sites; i++) {
        const struct site *old = &before->sites[i];
        if (old->provider == site->provider && old->place.module == site->place.module &&
            old->place.offset == site->place.offset && old->bias == site->bias) {
            site->is_unloadable = old->is_unloadable;
            site->place.min_generation = old->place.min_generation;
        }
    }
}

/* The loader's counts only grow: a list from higher ones is the newer. */
static void publish(struct scan *scan)
{
    lock_take(publish_lock);
    const struct site_list *before = active_list();
    struct site_list *next = &sites->lists[(sites->n_flips + 1) % 2];
    if (n_changes(&scan->list) > n_changes(before)) {
        uint64_t floor = __atomic_load_n(&sites->generation_floor, __ATOMIC_RELAXED);
        for (uint64_t i = 0; i < scan->list.n_sites; i++) {
            take_over(&scan->list.sites[i], before, floor);
            put_site(&next->sites[i], &scan->list.sites[i]);
        }
        __atomic_store_n(&next->n_adds, scan->list.n_adds, __ATOMIC_RELAXED);
        __atomic_store_n(&next->n_subs, scan->list.n_subs, __ATOMIC_RELAXED);
        __atomic_store_n(&next->n_sites, scan->list.n_sites, __ATOMIC_RELEASE);
        /* Pairs with the acquires in active_list and sites_get. */
        __atomic_store_n(&sites->n_flips, sites->n_flips + 1, __ATOMIC_RELEASE);
    }
    lock_drop(publish_lock);
}

bool sites_want_scan(void)
{
    return slot_is_newer_than(__atomic_load_n(&sites->generation_floor, __ATOMIC_RELAXED));
}

bool sites_scan(void)
{
    struct scan scan = {.is_first = n_changes(active_list()) == 0};
    uint64_t seen = slot_generation_seen();
    dl_iterate_phdr(look_at_object, &scan);
    if (scan.is_changed)
        publish(&scan);
    /* Whatever is loaded from now on belongs to a later generation than those seen before. */
    __atomic_store_n(&sites->generation_floor, seen, __ATOMIC_RELAXED);
    return scan.is_changed;
}

bool sites_is_in_loader(uintptr_t address)
{
    return address >= sites->loader_start && address < sites->loader_limit;
}
