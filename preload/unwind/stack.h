/* SPDX-License-Identifier: MIT
 * The part of memory a walk may read: the thread's own stack at once, any other page by page.
 *
 * Place: walk → stack. Threads and signals: a value of the walk's own; safe anywhere.
 * Failure: false, and the walk ends.
 */
#ifndef LABELPROF_UNWIND_STACK_H
#define LABELPROF_UNWIND_STACK_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attributes.h"
#include "unwind/walk.h"

/* Bytes below SP that a leaf function may use: what a signal interrupted may have saved there. */
enum { RED_ZONE_BYTES = 128 };

struct stack {
    uintptr_t low;     /* a multiple of 8 */
    uintptr_t n_words; /* readable from there on */
    bool is_known;     /* the thread's own: doesn't grow by probing */
    unsigned n_probes; /* system calls this walk has made */
};

/* Where `sp` lies. n_probes is kept. */
void stack_enter(struct stack *stack, uintptr_t sp, struct stack_bounds bounds);

/* The slow half of stack_has: another page, if there may be one. */
bool stack_probe(struct stack *stack, uintptr_t address);

/* Rotating right by 3 makes an odd lot of a misaligned address: one comparison tests it all. */
static inline bool stack_holds(const struct stack *stack, uintptr_t address)
{
    uintptr_t offset = address - stack->low;
    return (offset >> 3 | offset << 61) < stack->n_words;
}

/* The aligned word at an address can be read. */
static inline bool stack_has(struct stack *stack, uintptr_t address)
{
    return likely(stack_holds(stack, address)) || stack_probe(stack, address);
}

#endif
