/* SPDX-License-Identifier: MIT
 * The function patterns of all rules, in an order that finds the few that may match a name.
 *
 * A large library has fifty thousand functions, a file of rules a thousand patterns. Patterns are
 * sorted by what stands before their first * or ?; those whose beginning a name shares are the last
 * one not above the name, and its parents.
 * Place: rule_file → rule_index → rule_modules. Pure: safe anywhere. Failure: none.
 */
#ifndef LABELPROF_LABELS_RULE_INDEX_H
#define LABELPROF_LABELS_RULE_INDEX_H

#include "labels/rule_file.h"

struct rule_index_entry {
    const char *pattern;
    uint16_t prefix_bytes; /* up to the first * or ? */
    uint16_t rule;
    uint16_t parent; /* entry + 1 of the longest prefix this one begins with; 0: none */
};

struct rule_index {
    uint32_t n;
    struct rule_index_entry entries[RULE_PATTERNS_MAX];
};

void rule_index_build(struct rule_index *index, const struct label_rules *rules);

/* Offers every rule with `is_allowed` whose function patterns take the name; false: none does. */
bool rule_index_offer(const struct rule_index *index, const struct label_rules *rules,
                      const bool is_allowed[LABEL_RULES_MAX], const char *name, size_t n_bytes,
                      struct rule_choice *choice);

#endif
