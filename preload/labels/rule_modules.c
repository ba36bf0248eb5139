/* SPDX-License-Identifier: MIT */
#include "labels/rule_modules.h"

#include <string.h>

#include "base/region.h"

/* A function that a rule takes; offsets from the module's start. */
struct taken {
    uint32_t start, limit;
    uint32_t reach; /* the largest limit up to here: where looking back may end */
    uint32_t rule;
};

struct rule_module {
    struct taken *taken; /* by start */
    uint32_t n_taken;
    uint32_t n_whole;
    uint16_t whole[RULE_KEYS_MAX]; /* rules that take every frame of the module */
};

/* Under the book lock, as all here: the rules that may take functions of the module at hand. */
static bool is_allowed[LABEL_RULES_MAX];

static uint32_t n_skipped; /* atomic, relaxed: a counter */

/* Splits the rules that may take frames of this module by whether they ask for a function. False:
 * none does. */
static bool choose_rules(const struct label_rules *rules, const char *path,
                         struct rule_module *module)
{
    struct rule_choice whole = {.settled = 0};
    bool is_any_allowed = false;
    for (unsigned i = 0; i < rules->n_rules; i++) {
        const struct label_rule *rule = &rules->rules[i];
        bool is_mine = rules->keys[rule->key].is_wanted && rule_takes_module(rules, rule, path);
        is_allowed[i] = is_mine && rule->functions.n > 0;
        is_any_allowed |= is_allowed[i];
        if (is_mine && !rule->functions.n)
            rule_choice_offer(&whole, rules, i);
    }
    module->n_whole = rule_choice_list(&whole, module->whole);
    return is_any_allowed;
}

/* The first rule for each key that takes this function. */
static unsigned rules_of_function(const struct rules_in_use *rules,
                                  const struct function_name *function,
                                  uint16_t ret_rules[RULE_KEYS_MAX])
{
    struct rule_choice choice = {.settled = 0};
    if (!rule_index_offer(rules->index, rules->rules, is_allowed, function->name, function->n_bytes,
                          &choice))
        return 0;
    return rule_choice_list(&choice, ret_rules);
}

/* Fills in the module up to `n_max` entries; returns how many there are. */
static uint32_t take_functions(const struct rules_in_use *rules,
                               const struct rule_module_range *range,
                               const struct function_source *functions, struct taken *taken,
                               uint32_t n_max)
{
    struct function_name function;
    uint16_t matches[RULE_KEYS_MAX];
    uint32_t n = 0;
    functions->rewind(functions->context);
    while (functions->next(functions->context, &function)) {
        if (function.start < range->start || function.limit > range->limit)
            continue;
        unsigned n_matches = rules_of_function(rules, &function, matches);
        for (unsigned i = 0; i < n_matches; i++, n++)
            if (n < n_max)
                taken[n] = (struct taken){.start = (uint32_t)(function.start - range->start),
                                          .limit = (uint32_t)(function.limit - range->start),
                                          .rule = matches[i]};
    }
    return n;
}

static void sift_down(struct taken *heap, size_t at, size_t n)
{
    struct taken moved = heap[at];
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && heap[child + 1].start > heap[child].start)
            child++;
        if (heap[child].start <= moved.start)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* A heap sort: in place, and never quadratic. */
static void sort(struct taken *taken, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(taken, i, n);
    for (size_t end = n; end-- > 1;) {
        struct taken largest = taken[0];
        taken[0] = taken[end];
        taken[end] = largest;
        sift_down(taken, 0, end);
    }
}

static void note_reach(struct taken *taken, size_t n)
{
    uint32_t reach = 0;
    for (size_t i = 0; i < n; i++) {
        reach = taken[i].limit > reach ? taken[i].limit : reach;
        taken[i].reach = reach;
    }
}

static struct taken *room_for(uint32_t n)
{
    size_t n_bytes = (size_t)n * sizeof(struct taken);
    size_t limit_bytes = region_size_bytes(REGION_KEEP) / 2;
    size_t used_bytes = region_used_bytes(REGION_KEEP);
    if (used_bytes > limit_bytes || n_bytes > limit_bytes - used_bytes)
        return NULL;
    return region_take(REGION_KEEP, n_bytes);
}

static void compile_functions(const struct rules_in_use *rules,
                              const struct rule_module_range *range,
                              const struct function_source *functions, struct rule_module *module)
{
    uint32_t n = take_functions(rules, range, functions, NULL, 0);
    if (!n)
        return;
    struct taken *taken = room_for(n);
    if (!taken) {
        __atomic_fetch_add(&n_skipped, 1, __ATOMIC_RELAXED);
        return;
    }
    /* A file may have changed since it was counted. */
    uint32_t n_now = take_functions(rules, range, functions, taken, n);
    module->n_taken = n_now < n ? n_now : n;
    sort(taken, module->n_taken);
    note_reach(taken, module->n_taken);
    module->taken = taken;
}

const struct rule_module *rule_module_compile(const struct rules_in_use *rules,
                                              const struct rule_module_range *range,
                                              const struct function_source *functions)
{
    struct rule_module *module = region_take(REGION_KEEP, sizeof *module);
    if (!module)
        return NULL;
    if (choose_rules(rules->rules, range->path, module) &&
        range->limit - range->start <= UINT32_MAX)
        compile_functions(rules, range, functions, module);
    return module;
}

/* How many functions start at or before the offset. */
static uint32_t n_started(const struct rule_module *module, uintptr_t offset)
{
    uint32_t low = 0, high = module->n_taken;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (module->taken[middle].start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void rule_module_offer(const struct rule_module *module, const struct label_rules *rules,
                       uintptr_t offset, struct rule_choice *choice)
{
    for (uint32_t i = 0; i < module->n_whole; i++)
        rule_choice_offer(choice, rules, module->whole[i]);
    for (uint32_t i = n_started(module, offset); i > 0 && module->taken[i - 1].reach > offset; i--)
        if (module->taken[i - 1].limit > offset)
            rule_choice_offer(choice, rules, module->taken[i - 1].rule);
}

uint32_t rule_modules_skipped(void)
{
    return __atomic_load_n(&n_skipped, __ATOMIC_RELAXED);
}
