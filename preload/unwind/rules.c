/* SPDX-License-Identifier: MIT */
#include "unwind/rules.h"

#include <sys/auxv.h>

#include "base/sys.h"
#include "unwind/call.h"
#include "unwind/cfi.h"
#include "unwind/compile.h"
#include "unwind/find.h"
#include "unwind/modules.h"

#define KEY_TAKEN (~UINT64_C(0)) /* a writer is in the slot; no code has this address */
#define ADDRESS_OF(key) ((key) & ((UINT64_C(1) << RULES_ADDRESS_BITS) - 1))

struct rule_set *rules_table;
static uint64_t era; /* atomic: the generation's bits that don't fit into a key, for which the
                        table was last emptied */

bool rules_open(void)
{
    rules_table = sys_map(sizeof(struct rule_set) << RULES_LG_SETS);
    return rules_table != NULL;
}

/* The generation bits start anew. A thread that slept through 65536 unloads may still add to the
 * table by the old count; nobody looks there before as many have passed again. */
static COLD void begin_era(uint64_t new_era)
{
    for (uint32_t i = 0; i < 1u << RULES_LG_SETS; i++)
        for (int way = 0; way < RULES_WAYS; way++)
            __atomic_store_n(&rules_table[i].slots[way].key, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&era, new_era, __ATOMIC_RELEASE); /* pairs with rules_generation_bits */
}

uint64_t rules_generation_bits(void)
{
    uint64_t generation = modules_generation();
    uint64_t now = generation >> (64 - RULES_ADDRESS_BITS);
    if (unlikely(__atomic_load_n(&era, __ATOMIC_ACQUIRE) != now))
        begin_era(now);
    return generation << RULES_ADDRESS_BITS;
}

static bool is_of_generation(uint64_t key, uint64_t bits)
{
    return key != 0 && (key ^ bits) >> RULES_ADDRESS_BITS == 0;
}

/* A free or outdated slot, else any: the address picks it by bits that don't pick the set. */
static struct rule_slot *slot_for(uint64_t key, uint64_t *ret_old_key)
{
    struct rule_set *set = rules_set_of(key);
    struct rule_slot *slot = &set->slots[(key >> (RULES_LG_SETS + RULES_LG_GRAIN)) % RULES_WAYS];
    for (int way = 0; way < RULES_WAYS; way++) {
        uint64_t old = __atomic_load_n(&set->slots[way].key, __ATOMIC_RELAXED);
        if (old != KEY_TAKEN && !is_of_generation(old, key)) {
            slot = &set->slots[way];
            break;
        }
    }
    *ret_old_key = __atomic_load_n(&slot->key, __ATOMIC_RELAXED);
    return slot;
}

static void remember(uint64_t key, uint64_t rule)
{
    uint64_t old;
    struct rule_slot *slot = slot_for(key, &old);
    if (old == KEY_TAKEN || !__atomic_compare_exchange_n(&slot->key, &old, KEY_TAKEN, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return; /* somebody else is quicker: this rule is found out again the next time */
    __atomic_store_n(&slot->rule, rule, __ATOMIC_RELEASE); /* both pair with rules_find */
    __atomic_store_n(&slot->key, key, __ATOMIC_RELEASE);
}

static uint64_t guess_at(uintptr_t address)
{
    return call_ends_at(address + 1) ? RULE_GUESS : RULE_NOT_CODE;
}

/* The loader calls libraries' constructors from its entry code, the one part of it without a
 * description: nobody called that. */
static bool is_in_loader(uint32_t module_id)
{
    const struct module *module = modules_get(module_id);
    return module && module->start - module->file_offset == getauxval(AT_BASE);
}

/* False: the rule is good for now, and not to be remembered. */
static bool find_out(uintptr_t address, uintptr_t stack_left_bytes, uint64_t *ret_rule)
{
    struct cfi_tables tables;
    uint32_t module = 0;
    enum modules_answer answer = modules_find(address, &module, &tables);
    *ret_rule = RULE_NONE;
    if (answer == MODULES_BUSY)
        return false;
    if (answer == MODULES_OUTSIDE) {
        *ret_rule = guess_at(address);
        return true;
    }
    uint64_t rule = cfi_rule(&tables, address);
    if (rule == RULE_GUESS)
        rule = is_in_loader(module) ? RULE_OUTERMOST : guess_at(address);
    bool is_lasting = rule != RULE_NONE || compile_rule(&tables, address, stack_left_bytes, &rule);
    *ret_rule = rule | (uint64_t)module << RULES_ADDRESS_BITS;
    return is_lasting;
}

COLD uint64_t rules_add(uint64_t key, uintptr_t stack_left_bytes)
{
    uint64_t rule;
    if (find_out(ADDRESS_OF(key), stack_left_bytes, &rule))
        remember(key, rule);
    return rule;
}
