/* SPDX-License-Identifier: MIT
 * The labels of one sample as written: its set's, and those that rules give its stack.
 *
 * Rules are a property of the stack, so they cost a sample nothing and take no place among the
 * sets; only here do the two meet. Precedence is labels/gather.h's: a rule's label stands above
 * those of the process and the thread, below all others; beyond LABELS_MAX the lowest give way.
 * Threads: under the publish lock. Allocation: none. Failure: none.
 */
#ifndef LABELPROF_PUBLISH_SAMPLE_LABELS_H
#define LABELPROF_PUBLISH_SAMPLE_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "encoder/profile_writer.h"

struct label_set;
struct stack;

struct sample_labels {
    size_t n;
    struct profile_label at[LABELS_MAX + 1]; /* by key; one more for the caller's own */
    uint8_t rank[LABELS_MAX + 1];
};

void sample_labels_fill(struct sample_labels *labels, const struct label_set *set,
                        const struct stack *stack);

#endif
