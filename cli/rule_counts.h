/* SPDX-License-Identifier: MIT
 * What each label rule would give in profiles: decided stack by stack, as the library does.
 *
 * One difference remains: the library knows every name of a function, a profile only one.
 * Threads: one. Failure: none (memory.h).
 */
#ifndef LABELPROF_CLI_RULE_COUNTS_H
#define LABELPROF_CLI_RULE_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "cli/aggregate.h"
#include "encoder/reader.h"
#include "labels/rule_file.h"

struct rule_count {
    int64_t value, objects; /* of the stacks the rule labels */
    uint64_t n_stacks;
    bool takes_frames; /* some frame, whether or not another rule won */
};

struct rule_counts {
    const struct label_rules *rules;
    struct rule_count of_rule[LABEL_RULES_MAX];
    int64_t total;
    int64_t of_key[RULE_KEYS_MAX];
    uint64_t n_stacks;
    /* Stacks no rule labels, by the function nearest the leaf that has a name. */
    struct aggregate unlabelled;
};

/* objects_index: of the value that counts objects, -1: none. */
void rule_counts_add(struct rule_counts *counts, const struct profile_data *profile,
                     size_t value_index, int objects_index);

void rule_counts_free(struct rule_counts *counts);

#endif
