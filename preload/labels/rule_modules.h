/* SPDX-License-Identifier: MIT
 * The rules of one module, compiled: which of its addresses lie in a function that a rule takes.
 *
 * Names are compared once, when a module is compiled; after that a frame is a binary search among
 * the functions that some rule takes.
 * Place: rule_file → rule_modules → stack_rules. Memory: REGION_KEEP, at most half of it; a module
 * beyond that goes by its module rules alone, and is counted.
 * Threads: one at a time, the book lock or the start of the process. Signals: as that lock.
 */
#ifndef LABELPROF_LABELS_RULE_MODULES_H
#define LABELPROF_LABELS_RULE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "labels/function_sources.h"
#include "labels/rule_file.h"
#include "labels/rule_index.h"

struct rule_module;

struct rule_module_range {
    uintptr_t start, limit; /* functions beyond it are another module's */
    const char *path;
};

struct rules_in_use {
    const struct label_rules *rules;
    const struct rule_index *index; /* of these rules */
};

/* NULL: no memory at all. */
const struct rule_module *rule_module_compile(const struct rules_in_use *rules,
                                              const struct rule_module_range *range,
                                              const struct function_source *functions);

/* Offers every rule that takes the frame at `offset` from the module's start. */
void rule_module_offer(const struct rule_module *module, const struct label_rules *rules,
                       uintptr_t offset, struct rule_choice *choice);

/* Modules whose functions found no room. */
uint32_t rule_modules_skipped(void);

#endif
