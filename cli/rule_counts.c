/* SPDX-License-Identifier: MIT
 * What each label rule would give, see rule_counts.h.
 */
#include "cli/rule_counts.h"

#include <stdlib.h>
#include <string.h>
#include "cli/memory.h"

/* The rules that take a location: the first for each key. */
struct taken {
    bool is_known;
    uint16_t n, rules[RULE_KEYS_MAX];
};

struct counting {
    struct rule_counts *counts;
    const struct profile_data *profile;
    size_t value_index;
    int objects_index;
    struct taken *taken; /* by location */
};

/* The linker's name. Of inlined functions the last is the one that has a symbol. */
static const char *symbol_of(const struct read_location *location)
{
    if (location->n_lines == 0)
        return "";
    const struct read_function *function = location->lines[location->n_lines - 1].function;
    return function->system_name[0] ? function->system_name : function->name;
}

static bool takes(const struct label_rules *rules, const struct label_rule *rule,
                  const struct read_location *location)
{
    const char *symbol = symbol_of(location);
    if (!location->mapping || (rule->functions.n && !symbol[0]))
        return false;
    return rule_takes_module(rules, rule, location->mapping->file) &&
           rule_takes_function(rules, rule, symbol, strlen(symbol));
}

static void find_rules(struct counting *counting, const struct read_location *location,
                       struct taken *taken)
{
    const struct label_rules *rules = counting->counts->rules;
    struct rule_choice choice = {.settled = 0};
    for (unsigned i = 0; i < rules->n_rules; i++)
        if (takes(rules, &rules->rules[i], location)) {
            rule_choice_offer(&choice, rules, i);
            counting->counts->of_rule[i].takes_frames = true;
        }
    taken->n = (uint16_t)rule_choice_list(&choice, taken->rules);
    taken->is_known = true;
}

/* All frames are looked at, also those beyond the decision: what a rule takes is counted too. */
static unsigned choose(struct counting *counting, const struct read_sample *sample,
                       uint16_t ret_rules[RULE_KEYS_MAX])
{
    struct rule_choice choice = {.settled = 0};
    for (size_t i = 0; i < sample->n_locations; i++) {
        struct taken *taken = &counting->taken[sample->locations[i] - counting->profile->locations];
        if (!taken->is_known)
            find_rules(counting, sample->locations[i], taken);
        for (unsigned j = 0; j < taken->n; j++)
            rule_choice_offer(&choice, counting->counts->rules, taken->rules[j]);
        rule_choice_next_frame(&choice, counting->counts->rules);
    }
    return rule_choice_list(&choice, ret_rules);
}

static const char *name_nearest_leaf(const struct read_sample *sample,
                                     char buffer[LOCATION_NAME_BYTES])
{
    for (size_t i = 0; i < sample->n_locations; i++)
        if (symbol_of(sample->locations[i])[0])
            return symbol_of(sample->locations[i]);
    return sample->n_locations ? location_name(sample->locations[0], 0, buffer) : AGGREGATE_NONE;
}

struct sums {
    int64_t value, objects;
};

static void add_unlabelled(struct rule_counts *counts, const struct read_sample *sample,
                           int64_t value)
{
    char buffer[LOCATION_NAME_BYTES];
    size_t row = aggregate_row_of(&counts->unlabelled, name_nearest_leaf(sample, buffer));
    int64_t *flat = &counts->unlabelled.rows[row].flat;
    *flat = saturating_add(*flat, value);
}

static void add_stack(struct counting *counting, const struct read_sample *sample, struct sums sums)
{
    struct rule_counts *counts = counting->counts;
    uint16_t rules[RULE_KEYS_MAX];
    unsigned n = choose(counting, sample, rules);
    for (unsigned i = 0; i < n; i++) {
        struct rule_count *count = &counts->of_rule[rules[i]];
        int64_t *of_key = &counts->of_key[counts->rules->rules[rules[i]].key];
        count->value = saturating_add(count->value, sums.value);
        count->objects = saturating_add(count->objects, sums.objects);
        count->n_stacks++;
        *of_key = saturating_add(*of_key, sums.value);
    }
    if (n == 0)
        add_unlabelled(counts, sample, sums.value);
    counts->total = saturating_add(counts->total, sums.value);
    counts->n_stacks++;
}

static int compare_stacks(const void *left, const void *right)
{
    const struct read_sample *const *a = left, *const *b = right;
    if ((*a)->n_locations != (*b)->n_locations)
        return (*a)->n_locations < (*b)->n_locations ? -1 : 1;
    return (*a)->n_locations ? memcmp((*a)->locations, (*b)->locations,
                                      (*a)->n_locations * sizeof *(*a)->locations)
                             : 0;
}

/* One stack has a sample for each label set and object size: samples by stack. */
static const struct read_sample **sorted_samples(const struct profile_data *profile)
{
    const struct read_sample **samples = xcalloc(profile->n_samples, sizeof *samples);
    for (size_t i = 0; i < profile->n_samples; i++)
        samples[i] = &profile->samples[i];
    qsort(samples, profile->n_samples, sizeof *samples, compare_stacks);
    return samples;
}

void rule_counts_add(struct rule_counts *counts, const struct profile_data *profile,
                     size_t value_index, int objects_index)
{
    struct counting counting = {counts, profile, value_index, objects_index,
                                xcalloc(profile->n_locations, sizeof(struct taken))};
    const struct read_sample **samples = sorted_samples(profile);
    for (size_t i = 0, next; i < profile->n_samples; i = next) {
        struct sums sums = {0, 0};
        for (next = i;
             next < profile->n_samples && compare_stacks(&samples[i], &samples[next]) == 0;
             next++) {
            const int64_t *values = samples[next]->values;
            sums.value = saturating_add(sums.value, values[value_index]);
            if (objects_index >= 0)
                sums.objects = saturating_add(sums.objects, values[objects_index]);
        }
        add_stack(&counting, samples[i], sums);
    }
    free(samples);
    free(counting.taken);
}

void rule_counts_free(struct rule_counts *counts)
{
    aggregate_free(&counts->unlabelled);
}
