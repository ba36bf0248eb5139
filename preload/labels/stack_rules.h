/* SPDX-License-Identifier: MIT
 * The labels LABELPROF_RULES gives a stack, found out once, when the stack is first seen.
 *
 * What is known of a module's functions: at start the file's own symbol table (or its separate
 * debug file's) is read for each object that has one, since reading files is only safe there; all
 * else, stripped files and libraries loaded later, goes by the functions it exports, in memory.
 * Place: record/stacks asks; publish/export writes the labels down.
 * Threads: stack_rules_find under the book lock; the rest is fixed at start. Signals: as that lock.
 * Failure: at start false and one line; later a module without memory gives no labels.
 */
#ifndef LABELPROF_LABELS_STACK_RULES_H
#define LABELPROF_LABELS_STACK_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "labels/rule_file.h"

/* Reads LABELPROF_RULES. Once, after unwind_open and before the first sample. */
bool stack_rules_open(char *error, size_t error_bytes);

/* The rules that label this stack, one per key at most; returns how many. */
unsigned stack_rules_find(const uint64_t *frames, unsigned n_frames,
                          uint16_t ret_rules[RULE_KEYS_MAX]);

struct rule_label {
    const char *key, *value;
    size_t key_bytes, value_bytes;
};
struct rule_label stack_rules_label(uint16_t rule);

#endif
