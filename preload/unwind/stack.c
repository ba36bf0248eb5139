/* SPDX-License-Identifier: MIT */
#include "unwind/stack.h"

#include "base/sys.h"

/* About 0.1 ms of system calls at most, and 2 MiB of stack if it is dense. */
enum { PROBES_MAX = 512, WORD_BYTES = 8, PAGE_WORDS = PAGE_BYTES / WORD_BYTES };

void stack_enter(struct stack *stack, uintptr_t sp, struct stack_bounds bounds)
{
    stack->is_known = sp >= bounds.low && sp < bounds.high;
    stack->low = 0;
    stack->n_words = 0;
    if (!stack->is_known)
        return;
    uintptr_t low = (sp - RED_ZONE_BYTES) & ~(uintptr_t)(WORD_BYTES - 1);
    stack->low = low < bounds.low || low > sp ? round_up(bounds.low, WORD_BYTES) : low;
    stack->n_words = (bounds.high - stack->low) / WORD_BYTES;
}

COLD bool stack_probe(struct stack *stack, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    if (stack->is_known || page == 0 || address % WORD_BYTES || stack->n_probes == PROBES_MAX)
        return false;
    stack->n_probes++;
    if (!sys_can_read(page))
        return false;
    if (page == stack->low + stack->n_words * WORD_BYTES) {
        stack->n_words += PAGE_WORDS;
    } else {
        stack->low = page;
        stack->n_words = PAGE_WORDS;
    }
    return true;
}
