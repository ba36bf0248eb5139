/* SPDX-License-Identifier: MIT */
#include "publish/sample_labels.h"

#include <stdbool.h>
#include <string.h>

#include "labels/sets.h"
#include "labels/stack_rules.h"
#include "record/stacks.h"

enum rank { RANK_PROCESS, RANK_THREAD, RANK_RULE, RANK_VARIABLE };

static enum rank rank_of(const struct label_head *head, const char *key)
{
    static const char thread[] = "thread_";
    if (head->is_variable)
        return RANK_VARIABLE;
    bool is_thread =
        head->key_bytes >= sizeof thread && memcmp(key, thread, sizeof thread - 1) == 0;
    return is_thread ? RANK_THREAD : RANK_PROCESS;
}

static void add_set(struct sample_labels *labels, const struct label_set *set)
{
    static const enum profile_label_kind kinds[] = {
        [LABEL_TEXT] = PROFILE_LABEL_TEXT,
        [LABEL_NUMBER] = PROFILE_LABEL_NUMBER,
        [LABEL_SYMBOL] = PROFILE_LABEL_SYMBOL,
    };
    struct label_cursor cursor = sets_cursor(set);
    struct label_head head;
    const char *key, *value;
    while (sets_next(&cursor, &head, &key, &value)) {
        labels->rank[labels->n] = rank_of(&head, key);
        labels->at[labels->n++] = (struct profile_label){.kind = kinds[head.kind],
                                                         .key = {key, head.key_bytes},
                                                         .text = {value, head.value_bytes},
                                                         .number = head.number,
                                                         .frame = (uint64_t)head.number};
    }
}

static int compare(const struct profile_text *a, const struct profile_text *b)
{
    size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    int order = memcmp(a->bytes, b->bytes, n);
    return order ? order : (int)a->n_bytes - (int)b->n_bytes;
}

static void remove_at(struct sample_labels *labels, size_t at)
{
    labels->n--;
    memmove(&labels->at[at], &labels->at[at + 1], (labels->n - at) * sizeof labels->at[0]);
    memmove(&labels->rank[at], &labels->rank[at + 1], labels->n - at);
}

static void insert_at(struct sample_labels *labels, size_t at, const struct profile_label *label)
{
    memmove(&labels->at[at + 1], &labels->at[at], (labels->n - at) * sizeof labels->at[0]);
    memmove(&labels->rank[at + 1], &labels->rank[at], labels->n - at);
    labels->at[at] = *label;
    labels->rank[at] = RANK_RULE;
    labels->n++;
}

/* The last of the lowest rank, if that is below a rule's. */
static bool make_room(struct sample_labels *labels)
{
    size_t lowest = 0;
    for (size_t i = 0; i < labels->n; i++)
        if (labels->rank[i] <= labels->rank[lowest])
            lowest = i;
    if (labels->rank[lowest] >= RANK_RULE)
        return false;
    remove_at(labels, lowest);
    return true;
}

static size_t place_of(const struct sample_labels *labels, const struct profile_text *key,
                       bool *ret_is_taken)
{
    size_t at = 0;
    while (at < labels->n && compare(&labels->at[at].key, key) < 0)
        at++;
    *ret_is_taken = at < labels->n && compare(&labels->at[at].key, key) == 0;
    return at;
}

static void add_rule(struct sample_labels *labels, uint16_t rule)
{
    struct rule_label found = stack_rules_label(rule);
    struct profile_label label = {.kind = PROFILE_LABEL_TEXT,
                                  .key = {found.key, found.key_bytes},
                                  .text = {found.value, found.value_bytes}};
    bool is_taken;
    size_t at = place_of(labels, &label.key, &is_taken);
    if (is_taken && labels->rank[at] == RANK_VARIABLE)
        return;
    if (is_taken)
        remove_at(labels, at);
    else if (labels->n == LABELS_MAX && !make_room(labels))
        return;
    insert_at(labels, place_of(labels, &label.key, &is_taken), &label);
}

void sample_labels_fill(struct sample_labels *labels, const struct label_set *set,
                        const struct stack *stack)
{
    labels->n = 0;
    add_set(labels, set);
    for (unsigned i = 0; i < stack->n_rules; i++)
        add_rule(labels, stacks_rules(stack)[i]);
}
