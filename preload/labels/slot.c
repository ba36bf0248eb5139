/* SPDX-License-Identifier: MIT */
#include "labels/slot.h"

#include "base/attributes.h"
#include "base/region.h"
#include "labels/readable.h"

/* Beyond it a word is no offset from the thread pointer. */
enum { STATIC_TLS_MAX_BYTES = 1 << 24 };

static struct slots {
    uint32_t n_agreed, n_disagreed; /* atomic, relaxed */
    uint64_t generation_seen;       /* atomic, relaxed */
} *slots; /* in KEEP */

bool slot_open(void)
{
    slots = region_fix(REGION_KEEP, sizeof *slots);
    return slots != NULL;
}

/* glibc's, as debuggers and profilers outside the process read it. */
struct dtv_entry {
    uintptr_t value; /* [-1]: number of entries; [0]: generation; [module]: its block, or -1 */
    uintptr_t to_free;
};

static const struct dtv_entry *own_dtv(void)
{
    return ((struct dtv_entry *const *)__builtin_thread_pointer())[1];
}

static void note_generation(uint64_t generation)
{
    if (unlikely(generation > __atomic_load_n(&slots->generation_seen, __ATOMIC_RELAXED)))
        __atomic_store_n(&slots->generation_seen, generation, __ATOMIC_RELAXED);
}

/* The module's block, if this thread has touched it; else its variables are as they were born. */
static uintptr_t dtv_block(uint64_t module, uint64_t min_generation)
{
    const struct dtv_entry *dtv = own_dtv();
    note_generation(dtv[0].value);
    if (module > dtv[-1].value || dtv[0].value < min_generation ||
        dtv[module].value == UINTPTR_MAX)
        return 0;
    return dtv[module].value;
}

/* An object loaded late may have got static room, which threads older than it reach without their
 * dtv ever knowing. */
static uintptr_t static_slot(uint64_t tp_word, unsigned *n_probes_left)
{
    if (!tp_word || !readable(tp_word, sizeof(intptr_t), n_probes_left))
        return 0;
    intptr_t offset = __atomic_load_n((const intptr_t *)tp_word, __ATOMIC_RELAXED);
    if (offset >= 0 || offset < -STATIC_TLS_MAX_BYTES)
        return 0;
    return (uintptr_t)__builtin_thread_pointer() + (uintptr_t)offset;
}

static bool is_dtv_known(void)
{
    return __atomic_load_n(&slots->n_agreed, __ATOMIC_RELAXED) &&
           !__atomic_load_n(&slots->n_disagreed, __ATOMIC_RELAXED);
}

uintptr_t slot_find(const struct slot_place *place, unsigned *n_probes_left)
{
    uintptr_t slot = static_slot(place->tp_word, n_probes_left);
    if (slot || !is_dtv_known())
        return slot;
    uintptr_t block = dtv_block(place->module, place->min_generation);
    return block ? block + place->offset : 0;
}

void slot_compare(const struct dl_phdr_info *object)
{
    if (!object->dlpi_tls_modid || !object->dlpi_tls_data)
        return;
    const struct dtv_entry *dtv = own_dtv();
    bool is_same = object->dlpi_tls_modid <= dtv[-1].value &&
                   dtv[object->dlpi_tls_modid].value == (uintptr_t)object->dlpi_tls_data;
    __atomic_fetch_add(is_same ? &slots->n_agreed : &slots->n_disagreed, 1, __ATOMIC_RELAXED);
}

bool slot_is_newer_than(uint64_t generation)
{
    if (likely(own_dtv()[0].value <= generation) || !is_dtv_known())
        return false;
    note_generation(own_dtv()[0].value);
    return true;
}

uint64_t slot_generation_seen(void)
{
    note_generation(own_dtv()[0].value);
    return __atomic_load_n(&slots->generation_seen, __ATOMIC_RELAXED);
}
