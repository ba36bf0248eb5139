/* SPDX-License-Identifier: MIT
 * Distinct stacks, interned once and kept: the first level of the records.
 *
 * Stacks may use half the ledger. Beyond it (code that makes up new stacks for ever), and when the
 * ledger is nearly full (book.c), a new stack is FRAME_OTHER_STACKS alone, so totals stay right.
 * Threads: all calls under the book lock; a published stack never changes, so readers need none.
 */
#ifndef LABELPROF_RECORD_STACKS_H
#define LABELPROF_RECORD_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/region.h"

/* The pseudo frame "[other stacks]" (encoder/profile_writer.h). */
#define FRAME_OTHER_STACKS UINT64_C(2)

/* A stack shows the first few object sizes exactly; later ones share narrow classes. */
enum { EXACT_SIZES = 8 };

struct stack {
    region_ref next_in_bucket;
    uint32_t hash;
    uint16_t n_frames;
    uint16_t n_exact_sizes;
    uint16_t n_rules; /* labels/stack_rules.h; after the frames */
    uint64_t exact_sizes[EXACT_SIZES];
    uint64_t frames[]; /* unwind/walk.h; leaf first */
};

/* The rules that label the stack, found out when it was made. */
static inline const uint16_t *stacks_rules(const struct stack *stack)
{
    return (const uint16_t *)(stack->frames + stack->n_frames);
}

bool stacks_open(void);
/* NULL only when not even the "[other stacks]" stack could be made. */
struct stack *stacks_get(const uint64_t *frames, unsigned n_frames);
/* Only if it was seen before; else NULL. */
struct stack *stacks_find(const uint64_t *frames, unsigned n_frames);
/* The "[other stacks]" stack. */
struct stack *stacks_other(void);

/* The size under which objects of `size` bytes with this stack are recorded: the size itself for
 * the first EXACT_SIZES sizes, else the middle of its class (8 classes an octave: within 6.3 %). */
uint64_t stacks_size_label(struct stack *stack, uint64_t size);
uint64_t stacks_size_class(uint64_t size);

uint32_t stacks_count(void);
#endif
