/* SPDX-License-Identifier: MIT
 * The string table: a text to its index, every distinct text once. Index 0 is "".
 *
 * Texts are told apart by content; the hash only finds the place to look. They are copied, so the
 * caller's bytes may go. Memory: scratch, by the distinct texts. Threads: one at a time.
 * Failure: -ENOMEM.
 */
#ifndef LABELPROF_ENCODER_STRINGS_H
#define LABELPROF_ENCODER_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/profile_writer.h"
#include "encoder/scratch.h"

struct string_entry {
    struct profile_text text; /* valid UTF-8, no NUL */
    uint32_t hash;
    uint32_t function_mapping, function_id; /* the last function of that name; 0: none yet */
};

struct strings {
    struct scratch *scratch;
    struct scratch_array entries; /* struct string_entry, by index */
    struct scratch_array slots;   /* uint32_t: index + 1, 0 free; open addressing */
    struct scratch_array clean;   /* a text on its way to valid UTF-8 */
    size_t n_entries, n_slots;
};

/* Enters "" as 0. */
bool strings_begin(struct strings *strings, struct scratch *scratch);
void strings_end(struct strings *strings);
/* The index, at least 0; is_new says the text at that index has just been added. */
int64_t strings_index(struct strings *strings, struct profile_text text, bool *ret_is_new);
struct string_entry *strings_at(struct strings *strings, int64_t index);

#endif
