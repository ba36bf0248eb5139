/* SPDX-License-Identifier: MIT */
#include "unwind/modules.h"

#include <string.h>

#include "base/attributes.h"
#include "base/loader.h"
#include "base/lock.h"
#include "base/region.h"
#include "unwind/elf.h"
#include "unwind/find.h"
#include "unwind/path.h"

struct entry {
    struct module module; /* `unloaded` changes, atomically; all else is fixed once published */
    uint32_t id;
    uintptr_t bias;     /* the object's load address */
    struct entry *next; /* of the same bucket; entries never go */
};

enum { LG_BUCKETS = 10, LOCK_TRIES = 2000 };

/* Held a few µs by whoever adds or revives a module; in LEDGER: free in the child of fork. */
static struct lock *registry_lock;
static struct entry *entries[MODULES_MAX + 1]; /* by id; fixed up to n_entries */
static uint32_t n_entries;                     /* atomic */
static struct entry *buckets[1 << LG_BUCKETS]; /* atomic, by segment start */
static uint64_t generation;                    /* atomic */
static bool outside_seen; /* atomic: since the last generation, code of no object was asked for */
static uint64_t n_unloads_seen; /* atomic: the loader's count when modules_mark_unloaded last ran */

uint32_t modules_count(void)
{
    /* Pairs with the release in publish: the entries up to here are complete. */
    return __atomic_load_n(&n_entries, __ATOMIC_ACQUIRE);
}

const struct module *modules_get(uint32_t id)
{
    return id == 0 || id > modules_count() ? NULL : &entries[id]->module;
}

uint64_t modules_generation(void)
{
    /* Pairs with the release in modules_new_generation: a rule found out in this generation sees
     * what began it. */
    return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
}

void modules_new_generation(void)
{
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

/* Relaxed, as set_unloaded: the flag stands alone. */
static bool is_unloaded(const struct entry *entry)
{
    return __atomic_load_n(&entry->module.unloaded, __ATOMIC_RELAXED);
}

static void set_unloaded(struct entry *entry, bool unloaded)
{
    __atomic_store_n(&entry->module.unloaded, unloaded, __ATOMIC_RELAXED);
}

static struct entry **bucket_of(uintptr_t start)
{
    return &buckets[(start / PAGE_BYTES * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - LG_BUCKETS)];
}

static bool is_same_file(const struct entry *entry, const struct elf_segment *segment)
{
    const struct module *module = &entry->module;
    return module->build_id_bytes == segment->build_id_bytes &&
           (!module->build_id_bytes ||
            memcmp(module->build_id, segment->build_id, module->build_id_bytes) == 0) &&
           path_is_of(module->path, segment->object);
}

static bool is_same(const struct entry *entry, const struct elf_segment *segment)
{
    const struct module *module = &entry->module;
    return module->start == segment->start && module->limit == segment->limit &&
           module->file_offset == segment->file_offset && entry->bias == segment->object->l_addr &&
           is_same_file(entry, segment);
}

static struct entry *look_up(const struct elf_segment *segment)
{
    /* Pairs with the release in publish. */
    struct entry *entry = __atomic_load_n(bucket_of(segment->start), __ATOMIC_ACQUIRE);
    while (entry && !is_same(entry, segment))
        entry = entry->next;
    return entry;
}

static void publish(struct entry *entry)
{
    struct entry **bucket = bucket_of(entry->module.start);
    entry->id = n_entries + 1;
    entry->next = *bucket;
    entries[entry->id] = entry;
    __atomic_store_n(&n_entries, entry->id, __ATOMIC_RELEASE); /* pairs with modules_count */
    __atomic_store_n(bucket, entry, __ATOMIC_RELEASE);         /* pairs with look_up */
    /* What was code of no object may be this one's now. Pairs with note_outside. */
    if (__atomic_exchange_n(&outside_seen, false, __ATOMIC_RELAXED))
        modules_new_generation();
}

static struct entry *add(const struct elf_segment *segment)
{
    if (n_entries == MODULES_MAX)
        return NULL;
    const char *path = path_of(segment->object);
    struct entry *entry = path ? region_take(REGION_KEEP, sizeof(*entry)) : NULL;
    if (!entry)
        return NULL;
    entry->module = (struct module){
        .start = segment->start,
        .limit = segment->limit,
        .file_offset = segment->file_offset,
        .path = path,
        .build_id_bytes = (uint8_t)segment->build_id_bytes,
    };
    if (segment->build_id_bytes)
        memcpy(entry->module.build_id, segment->build_id, segment->build_id_bytes);
    entry->bias = segment->object->l_addr;
    publish(entry);
    return entry;
}

static bool overlap(const struct module *a, const struct module *b)
{
    return a->start < b->limit && b->start < a->limit;
}

/* Where this module lies no other can: one that did was unloaded and nobody told us (libc closes
 * its NSS and iconv plugins itself). */
static void retire_overlapped(const struct entry *by)
{
    bool did_retire = false;
    for (uint32_t id = 1; id <= n_entries; id++) {
        struct entry *other = entries[id];
        if (other == by || is_unloaded(other) || !overlap(&other->module, &by->module))
            continue;
        set_unloaded(other, true);
        did_retire = true;
    }
    if (did_retire)
        modules_new_generation();
}

static bool take_registry(void)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (lock_try(registry_lock))
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

static COLD enum modules_answer register_segment(const struct elf_segment *segment,
                                                 struct entry **ret_entry)
{
    if (!take_registry())
        return MODULES_BUSY;
    struct entry *entry = look_up(segment);
    if (!entry)
        entry = add(segment);
    if (entry) {
        set_unloaded(entry, false);
        retire_overlapped(entry);
    }
    lock_drop(registry_lock);
    *ret_entry = entry;
    return entry ? MODULES_FOUND : MODULES_OUTSIDE;
}

static enum modules_answer note_outside(void)
{
    /* Relaxed: if the module that comes to lie here is added just now, the stale guess costs one
     * frame's name, and the next generation drops it. */
    if (!__atomic_load_n(&outside_seen, __ATOMIC_RELAXED))
        __atomic_store_n(&outside_seen, true, __ATOMIC_RELAXED);
    return MODULES_OUTSIDE;
}

enum modules_answer modules_find(uintptr_t address, uint32_t *ret_id, struct cfi_tables *ret_tables)
{
    struct elf_segment segment;
    if (!elf_find(address, &segment))
        return note_outside();
    struct entry *entry = look_up(&segment);
    if (!entry || is_unloaded(entry)) {
        enum modules_answer answer = register_segment(&segment, &entry);
        if (answer != MODULES_FOUND)
            return answer;
    }
    *ret_id = entry->id;
    *ret_tables = segment.tables;
    return MODULES_FOUND;
}

bool modules_open(void)
{
    uint32_t id;
    struct cfi_tables tables;
    path_open();
    registry_lock = region_fix(REGION_LEDGER, sizeof *registry_lock);
    return registry_lock && loader_open() &&
           modules_find(elf_main_code(), &id, &tables) == MODULES_FOUND;
}

struct census {
    uint64_t n_unloads;
    uint64_t present[(MODULES_MAX + 64) / 64]; /* one bit per id */
};

static int tick_off(struct dl_phdr_info *object, size_t bytes, void *context)
{
    struct census *census = context;
    (void)bytes;
    census->n_unloads = object->dlpi_subs;
    if (object->dlpi_subs == __atomic_load_n(&n_unloads_seen, __ATOMIC_RELAXED))
        return 1;
    struct link_map as_named = {.l_addr = object->dlpi_addr, .l_name = (char *)object->dlpi_name};
    for (uint32_t id = 1, n = modules_count(); id <= n; id++)
        if (entries[id]->bias == object->dlpi_addr &&
            path_is_of(entries[id]->module.path, &as_named))
            census->present[id / 64] |= UINT64_C(1) << id % 64;
    return 0;
}

/* Two at once are harmless: whoever marks a module that is back already also starts a generation,
 * and the next stack through it finds and revives it. So are namespaces of dlmopen, which the
 * loader doesn't list here. */
void modules_mark_unloaded(void)
{
    struct census census = {0};
    bool did_mark = false;
    uint32_t n = modules_count(); /* before the census: later ones are not its business */
    if (dl_iterate_phdr(tick_off, &census) != 0)
        return;
    for (uint32_t id = 1; id <= n; id++) {
        if ((census.present[id / 64] >> id % 64 & 1) || is_unloaded(entries[id]))
            continue;
        set_unloaded(entries[id], true);
        did_mark = true;
    }
    /* Relaxed: a count read too old only makes the next call look again. */
    __atomic_store_n(&n_unloads_seen, census.n_unloads, __ATOMIC_RELAXED);
    if (did_mark)
        modules_new_generation();
}
