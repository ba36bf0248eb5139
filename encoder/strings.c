/* SPDX-License-Identifier: MIT */
#include "encoder/strings.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "encoder/utf8.h"

enum { FIRST_SLOTS = 1024 };

struct string_entry *strings_at(struct strings *strings, int64_t index)
{
    return (struct string_entry *)strings->entries.start + index;
}

/* The slot of the text, or the free one where it belongs. */
static uint32_t *find_slot(struct strings *strings, struct profile_text text, uint32_t hash)
{
    uint32_t *slots = strings->slots.start;
    for (size_t i = hash;; i++) {
        uint32_t *slot = &slots[i & (strings->n_slots - 1)];
        if (*slot == 0)
            return slot;
        const struct string_entry *entry = strings_at(strings, *slot - 1);
        if (entry->hash == hash && entry->text.n_bytes == text.n_bytes &&
            memcmp(entry->text.bytes, text.bytes, text.n_bytes) == 0)
            return slot;
    }
}

/* At most half full, so that a look-up that fails ends soon. */
static bool make_room(struct strings *strings)
{
    struct scratch_array slots = {NULL, 0};
    size_t n_slots = strings->n_slots ? 2 * strings->n_slots : FIRST_SLOTS;
    if (2 * (strings->n_entries + 1) <= strings->n_slots)
        return true;
    if (n_slots > UINT32_MAX || !scratch_reserve(strings->scratch, &slots, n_slots * 4))
        return false;
    scratch_drop(strings->scratch, &strings->slots);
    strings->slots = slots;
    strings->n_slots = n_slots;
    for (size_t i = 0; i < strings->n_entries; i++) {
        const struct string_entry *entry = strings_at(strings, (int64_t)i);
        *find_slot(strings, entry->text, entry->hash) = (uint32_t)i + 1;
    }
    return true;
}

static int64_t add(struct strings *strings, struct profile_text text, uint32_t hash)
{
    size_t index = strings->n_entries;
    char *copy = scratch_take(strings->scratch, text.n_bytes);
    if (!copy || !make_room(strings) ||
        !scratch_reserve(strings->scratch, &strings->entries,
                         (index + 1) * sizeof(struct string_entry)))
        return -ENOMEM;
    memcpy(copy, text.bytes, text.n_bytes);
    text.bytes = copy;
    *strings_at(strings, (int64_t)index) = (struct string_entry){text, hash, 0, 0};
    *find_slot(strings, text, hash) = (uint32_t)index + 1;
    strings->n_entries++;
    return (int64_t)index;
}

/* Only valid texts are in the table, so a hit needs no validation. */
static bool find(struct strings *strings, struct profile_text text, uint32_t *ret_hash,
                 int64_t *ret_index)
{
    *ret_hash = (uint32_t)hash_bytes(text.bytes, text.n_bytes);
    uint32_t slot = *find_slot(strings, text, *ret_hash);
    *ret_index = (int64_t)slot - 1;
    return slot != 0;
}

static int64_t clean_up(struct strings *strings, struct profile_text *text)
{
    if (!scratch_reserve(strings->scratch, &strings->clean, text->n_bytes * UTF8_MAX_GROWTH))
        return -ENOMEM;
    text->n_bytes = utf8_clean(strings->clean.start, text->bytes, text->n_bytes);
    text->bytes = strings->clean.start;
    return 0;
}

int64_t strings_index(struct strings *strings, struct profile_text text, bool *ret_is_new)
{
    uint32_t hash;
    int64_t index;
    *ret_is_new = false;
    if (text.n_bytes == 0)
        return 0;
    if (find(strings, text, &hash, &index))
        return index;
    if (utf8_valid_prefix(text.bytes, text.n_bytes) < text.n_bytes) {
        if (clean_up(strings, &text) < 0)
            return -ENOMEM;
        if (find(strings, text, &hash, &index))
            return index;
    }
    *ret_is_new = true;
    return add(strings, text, hash);
}

bool strings_begin(struct strings *strings, struct scratch *scratch)
{
    struct profile_text empty = {"", 0};
    *strings = (struct strings){.scratch = scratch};
    return make_room(strings) && add(strings, empty, (uint32_t)hash_bytes("", 0)) == 0;
}

void strings_end(struct strings *strings)
{
    scratch_drop(strings->scratch, &strings->entries);
    scratch_drop(strings->scratch, &strings->slots);
    scratch_drop(strings->scratch, &strings->clean);
}
