/* SPDX-License-Identifier: MIT */
#include "labels/current.h"

#include <stddef.h>
#include <string.h>

#include "base/lock.h"
#include "base/pool.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/thread.h"

struct label_capture {
    uint32_t n_references; /* atomic */
    uint32_t n_labels;
    struct label_slot *labels[LABELS_MAX];
};

static struct lock *pools_lock; /* in LEDGER: free in the child of fork */
static struct pools {
    struct pool blocks, slots, captures;
} *pools; /* in KEEP */

static uint32_t names_generation; /* atomic; relaxed, since the name itself is the kernel's */

bool current_open(void)
{
    pools_lock = region_fix(REGION_LEDGER, sizeof *pools_lock);
    pools = region_fix(REGION_KEEP, sizeof *pools);
    return pools_lock && pools;
}

static void *get(struct pool *pool, size_t bytes)
{
    lock_take(pools_lock);
    void *block = pool_get(pool, REGION_KEEP, bytes);
    lock_drop(pools_lock);
    return block;
}

static void put(struct pool *pool, void *block)
{
    lock_take(pools_lock);
    pool_put(pool, block);
    lock_drop(pools_lock);
}

struct thread_block *current_block(void)
{
    if (likely(thread_self.block != NULL))
        return thread_self.block;
    struct thread_block *block = thread_self.is_over ? NULL : get(&pools->blocks, sizeof *block);
    if (!block)
        return NULL;
    memset(block, 0, sizeof *block);
    thread_self.block = block;
    thread_exit_watch();
    return block;
}

void current_forget(void)
{
    struct thread_block *block = thread_self.block;
    if (!block)
        return;
    thread_self.block = NULL;
    for (uint32_t i = 0; i < block->n_slots; i++)
        put(&pools->slots, block->slots[i]);
    put(&pools->blocks, block);
}

static inline uint64_t load_8(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint32_t load_4(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* memcmp of short keys without the call: two loads that may overlap cover 4 to 16 bytes. */
static inline bool are_same(const char *a, const char *b, size_t n_bytes)
{
    if (n_bytes >= 8 && n_bytes <= 16)
        return load_8(a) == load_8(b) && load_8(a + n_bytes - 8) == load_8(b + n_bytes - 8);
    if (n_bytes >= 4 && n_bytes < 8)
        return load_4(a) == load_4(b) && load_4(a + n_bytes - 4) == load_4(b + n_bytes - 4);
    return memcmp(a, b, n_bytes) == 0;
}

static inline bool has_key(const struct label_slot *slot, const char *key, size_t key_bytes)
{
    return slot->key_bytes == key_bytes && are_same(slot->key, key, key_bytes);
}

/* The slot with this key, set or not. */
static struct label_slot *find_slot(struct thread_block *block, const char *key)
{
    size_t key_bytes = strlen(key);
    if (likely(block->recent && has_key(block->recent, key, key_bytes)))
        return block->recent;
    for (uint32_t i = 0; i < block->n_slots; i++)
        if (has_key(block->slots[i], key, key_bytes))
            return block->recent = block->slots[i];
    return NULL;
}

static struct label_slot *new_slot(struct thread_block *block)
{
    if (block->n_slots == LABELS_MAX || !thread_enter())
        return NULL;
    struct label_slot *slot = get(&pools->slots, sizeof *slot);
    thread_leave();
    if (!slot)
        return NULL;
    memset(slot, 0, offsetof(struct label_slot, key)); /* the pool's link lay there */
    block->slots[block->n_slots] = slot;
    __atomic_signal_fence(__ATOMIC_RELEASE); /* a handler that counts the slot finds it filled in */
    block->n_slots++;
    return slot;
}

static struct label_slot *unset_slot(const struct thread_block *block)
{
    for (uint32_t i = 0; i < block->n_slots; i++)
        if (!block->slots[i]->is_set)
            return block->slots[i];
    return NULL;
}

/* The contract's rules on keys: 0 if it may not be set. */
static size_t good_key_bytes(const char *key)
{
    size_t n_bytes = strnlen(key, LABEL_KEY_BYTES + 1);
    if (n_bytes > LABEL_KEY_BYTES || strncmp(key, "pprof::", 7) == 0)
        return 0;
    return n_bytes;
}

/* A slot for a key that has none, if it may have one. */
static COLD struct label_slot *slot_for_new_key(struct thread_block *block, const char *key)
{
    size_t key_bytes = good_key_bytes(key);
    if (!key_bytes)
        return NULL;
    struct label_slot *slot = unset_slot(block);
    if (!slot)
        slot = new_slot(block);
    if (!slot)
        return NULL;
    memcpy(slot->key, key, key_bytes + 1);
    slot->key_bytes = (uint8_t)key_bytes;
    return slot;
}

static struct label_slot *slot_for(struct thread_block *block, const char *key)
{
    struct label_slot *slot = find_slot(block, key);
    return likely(slot != NULL) ? slot : slot_for_new_key(block, key);
}

static struct thread_block *block_for_change(void)
{
    struct thread_block *block = thread_self.block;
    if (unlikely(!block)) {
        if (!pools || !thread_enter())
            return NULL;
        block = current_block();
        thread_leave();
        if (!block)
            return NULL;
    }
    if (block->is_changing) /* this is a handler, and it interrupted a change */
        return NULL;
    block->is_changing = true;
    block->version++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return block;
}

static void end_change(struct thread_block *block)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    block->version++;
    block->is_changing = false;
}

static void clear_slot(struct label_slot *slot)
{
    if (!slot)
        return;
    slot->is_set = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void fill_slot(struct label_slot *slot, enum label_kind kind, const char *value,
                      size_t value_bytes, int64_t number)
{
    clear_slot(slot);
    slot->kind = (uint8_t)kind;
    slot->value_bytes = (uint16_t)value_bytes;
    slot->number = number;
    memcpy(slot->value, value, value_bytes);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    slot->is_set = true;
}

static int set(const char *key, enum label_kind kind, const char *value, size_t value_bytes,
               int64_t number)
{
    struct thread_block *block = key ? block_for_change() : NULL;
    if (!block)
        return -1;
    struct label_slot *slot = slot_for(block, key);
    if (slot)
        fill_slot(slot, kind, value, value_bytes, number);
    end_change(block);
    return slot ? 0 : -1;
}

int current_set_text(const char *key, const char *value, size_t value_bytes)
{
    if (value_bytes == 0) /* an empty value is no label */
        return current_unset(key);
    if (unlikely(value_bytes > LABEL_VALUE_BYTES))
        value_bytes = text_cut_at_character(value, value_bytes, LABEL_VALUE_BYTES);
    return set(key, LABEL_TEXT, value, value_bytes, 0);
}

int current_set_number(const char *key, long number, const char *unit)
{
    if (key && strcmp(key, "bytes") == 0) /* the size of the object has that name */
        return -1;
    const char *text = unit ? unit : "";
    size_t unit_bytes = text_cut_at_character(text, strlen(text), LABEL_VALUE_BYTES);
    return set(key, LABEL_NUMBER, text, unit_bytes, number);
}

int current_unset(const char *key)
{
    if (!key)
        return -1;
    if (!thread_self.block)
        return pools && good_key_bytes(key) ? 0 : -1;
    struct thread_block *block = block_for_change();
    if (!block)
        return -1;
    struct label_slot *slot = find_slot(block, key);
    clear_slot(slot);
    end_change(block);
    return slot || good_key_bytes(key) ? 0 : -1;
}

/* What is used of a slot; most of it seldom is. */
static void copy_slot(struct label_slot *to, const struct label_slot *from)
{
    memcpy(to, from, offsetof(struct label_slot, value));
    if (from->is_set)
        memcpy(to->value, from->value, from->value_bytes);
}

int current_replace_text(const char *key, const char *value, struct label_before *before)
{
    size_t value_bytes = strlen(value);
    struct thread_block *block = block_for_change();
    if (!block)
        return -1;
    struct label_slot *slot = slot_for(block, key);
    if (slot) {
        copy_slot(&before->slot, slot);
        if (unlikely(value_bytes > LABEL_VALUE_BYTES))
            value_bytes = text_cut_at_character(value, value_bytes, LABEL_VALUE_BYTES);
        value_bytes ? fill_slot(slot, LABEL_TEXT, value, value_bytes, 0) : clear_slot(slot);
    }
    end_change(block);
    return slot ? 0 : -1;
}

void current_put_back(const struct label_before *before)
{
    const struct label_slot *was = &before->slot;
    if (was->is_set)
        set(was->key, was->kind, was->value, was->value_bytes, was->number);
    else
        current_unset(was->key);
}

static void free_capture(struct label_capture *capture)
{
    for (uint32_t i = 0; i < capture->n_labels; i++)
        put(&pools->slots, capture->labels[i]);
    put(&pools->captures, capture);
}

static bool capture_slots(struct label_capture *capture, const struct thread_block *block)
{
    for (uint32_t i = 0; i < block->n_slots; i++) {
        if (!block->slots[i]->is_set)
            continue;
        struct label_slot *copy = get(&pools->slots, sizeof *copy);
        if (!copy)
            return false;
        copy_slot(copy, block->slots[i]);
        capture->labels[capture->n_labels++] = copy;
    }
    return true;
}

/* NULL also if there is nothing to capture. */
static struct label_capture *capture_block(const struct thread_block *block)
{
    struct label_capture *capture = get(&pools->captures, sizeof *capture);
    if (!capture)
        return NULL;
    capture->n_references = 1;
    capture->n_labels = 0;
    if (capture_slots(capture, block) && capture->n_labels)
        return capture;
    free_capture(capture);
    return NULL;
}

struct label_capture *current_capture(void)
{
    if (!thread_self.block || !thread_enter())
        return NULL;
    /* A change, to handlers: they must not write what is being copied. */
    struct thread_block *block = block_for_change();
    struct label_capture *capture = block ? capture_block(block) : NULL;
    if (block)
        end_change(block);
    thread_leave();
    return capture;
}

int current_attach(const struct label_capture *capture)
{
    if (!capture && !thread_self.block)
        return pools ? 0 : -1;
    struct thread_block *block = block_for_change();
    if (!block)
        return -1;
    for (uint32_t i = 0; i < block->n_slots; i++)
        clear_slot(block->slots[i]);
    bool is_whole = true;
    for (uint32_t i = 0; capture && i < capture->n_labels; i++) {
        const struct label_slot *from = capture->labels[i];
        struct label_slot *to = slot_for(block, from->key);
        if (to)
            fill_slot(to, from->kind, from->value, from->value_bytes, from->number);
        is_whole &= to != NULL;
    }
    end_change(block);
    return is_whole ? 0 : -1;
}

void current_release(struct label_capture *capture)
{
    if (!capture || !thread_enter()) /* in a handler inside the profiler: kept, never corrupted */
        return;
    /* Acquire-release: the last holder sees every other holder done with it. */
    if (__atomic_sub_fetch(&capture->n_references, 1, __ATOMIC_ACQ_REL) == 0)
        free_capture(capture);
    thread_leave();
}

void current_name_is(const char *name)
{
    if (!thread_enter())
        return;
    struct thread_block *block = current_block();
    if (block) {
        size_t n_bytes = strnlen(name, sizeof block->name - 1);
        memset(block->name, 0, sizeof block->name);
        memcpy(block->name, name, n_bytes);
        block->is_name_known = true;
    }
    thread_leave();
}

void current_names_changed(void)
{
    __atomic_fetch_add(&names_generation, 1, __ATOMIC_RELAXED);
}

const char *current_name(struct thread_block *block)
{
    uint32_t generation = __atomic_load_n(&names_generation, __ATOMIC_RELAXED);
    if (!block->is_name_known || block->names_generation != generation) {
        sys_thread_name(block->name);
        block->names_generation = generation;
        block->is_name_known = true;
    }
    return block->name;
}
