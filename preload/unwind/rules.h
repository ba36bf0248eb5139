/* SPDX-License-Identifier: MIT
 * Address → rule, shared by all threads: sets of four slots, replaced when full, never locked.
 *
 * Place: walk → rules → (cfi | compile) → modules. The table is a mapping of its own that fork
 * keeps: the child's code is where it was. (A slot caught half-written by fork stays unused.)
 * A key is an address below its generation: when a module goes, every key ceases to match.
 * Threads and signals: lock-free, safe in a handler over anything here. Allocation: none.
 * Failure: RULE_NONE.
 */
#ifndef LABELPROF_UNWIND_RULES_H
#define LABELPROF_UNWIND_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include "base/attributes.h"
#include "unwind/rule.h"

enum { RULES_LG_SETS = 13, RULES_LG_GRAIN = 2, RULES_WAYS = 4, RULES_ADDRESS_BITS = 48 };

struct rule_slot {
    uint64_t key, rule; /* both atomic */
};

/* One cache line. */
struct rule_set {
    struct rule_slot slots[RULES_WAYS];
} __attribute__((aligned(64)));

/* Fixed by rules_open. Hidden, so that it is read without the detour of a foreign symbol. */
extern struct rule_set *rules_table __attribute__((visibility("hidden")));

bool rules_open(void);

/* The bits a key carries above its address; taken once per walk. */
uint64_t rules_generation_bits(void);

/* Finds the rule out and remembers it. `stack_left_bytes`: what may be used to do so. */
uint64_t rules_add(uint64_t key, uintptr_t stack_left_bytes);

/* The low bits of code addresses are as good as random, and mixing them would lengthen what each
 * frame waits for: pc → set → rule → caller's pc. Two calls hardly ever end within four bytes, so
 * the lowest bits are left out: neighbours in the code then touch fewer pages of the table. */
static inline struct rule_set *rules_set_of(uint64_t key)
{
    return &rules_table[(key >> RULES_LG_GRAIN) & ((1u << RULES_LG_SETS) - 1)];
}

/* The slot is read key, rule, key: the same key twice, and the rule between them is its own. Only
 * if the slot were given away and back again within these three loads could it be another's. */
static inline bool rules_find(uint64_t key, uint64_t *ret_rule)
{
    struct rule_set *set = rules_set_of(key);
#pragma GCC unroll 4
    for (int way = 0; way < RULES_WAYS; way++) {
        struct rule_slot *slot = &set->slots[way];
        /* Pairs with the release of the key in rules.c: the rule is at least as new. */
        if (__atomic_load_n(&slot->key, __ATOMIC_ACQUIRE) != key)
            continue;
        /* Pairs with the release of the rule there: a newer one shows the slot taken below. */
        *ret_rule = __atomic_load_n(&slot->rule, __ATOMIC_ACQUIRE);
        return likely(__atomic_load_n(&slot->key, __ATOMIC_RELAXED) == key);
    }
    return false;
}

#endif
