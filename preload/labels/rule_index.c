/* SPDX-License-Identifier: MIT */
#include "labels/rule_index.h"

#include <string.h>

static int compare(const struct rule_index_entry *entry, const char *name, size_t n_bytes)
{
    size_t n = entry->prefix_bytes < n_bytes ? entry->prefix_bytes : n_bytes;
    int order = memcmp(entry->pattern, name, n);
    if (order)
        return order;
    return entry->prefix_bytes < n_bytes ? -1 : entry->prefix_bytes > n_bytes;
}

static bool is_below(const struct rule_index_entry *a, const struct rule_index_entry *b)
{
    return compare(a, b->pattern, b->prefix_bytes) < 0;
}

static void sift_down(struct rule_index_entry *heap, size_t at, size_t n)
{
    struct rule_index_entry moved = heap[at];
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && is_below(&heap[child], &heap[child + 1]))
            child++;
        if (!is_below(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void sort(struct rule_index_entry *entries, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(entries, i, n);
    for (size_t end = n; end-- > 1;) {
        struct rule_index_entry largest = entries[0];
        entries[0] = entries[end];
        entries[end] = largest;
        sift_down(entries, 0, end);
    }
}

static bool begins_with(const struct rule_index_entry *prefix, const char *name, size_t n_bytes)
{
    return prefix->prefix_bytes <= n_bytes &&
           memcmp(prefix->pattern, name, prefix->prefix_bytes) == 0;
}

/* A parent is the entry before, or one of that one's parents: between a prefix and a name that has
 * it, all have it. */
static void link_parents(struct rule_index *index)
{
    for (uint32_t i = 0; i < index->n; i++) {
        struct rule_index_entry *entry = &index->entries[i];
        uint32_t parent = i;
        while (parent &&
               !begins_with(&index->entries[parent - 1], entry->pattern, entry->prefix_bytes))
            parent = index->entries[parent - 1].parent;
        entry->parent = (uint16_t)parent;
    }
}

void rule_index_build(struct rule_index *index, const struct label_rules *rules)
{
    index->n = 0;
    for (uint32_t i = 0; i < rules->n_rules; i++) {
        const struct rule_patterns *functions = &rules->rules[i].functions;
        for (unsigned j = 0; j < functions->n; j++) {
            const char *pattern = rules->text + rules->patterns[functions->first + j];
            index->entries[index->n++] =
                (struct rule_index_entry){.pattern = pattern,
                                          .prefix_bytes = (uint16_t)strcspn(pattern, "*?"),
                                          .rule = (uint16_t)i};
        }
    }
    sort(index->entries, index->n);
    link_parents(index);
}

/* How many entries are not above the name. */
static uint32_t n_not_above(const struct rule_index *index, const char *name, size_t n_bytes)
{
    uint32_t low = 0, high = index->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(&index->entries[middle], name, n_bytes) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool takes(const struct rule_index_entry *entry, const char *name, size_t n_bytes)
{
    return begins_with(entry, name, n_bytes) &&
           rule_pattern_matches(entry->pattern + entry->prefix_bytes, name + entry->prefix_bytes,
                                n_bytes - entry->prefix_bytes);
}

bool rule_index_offer(const struct rule_index *index, const struct label_rules *rules,
                      const bool is_allowed[LABEL_RULES_MAX], const char *name, size_t n_bytes,
                      struct rule_choice *choice)
{
    bool is_taken = false;
    for (uint32_t at = n_not_above(index, name, n_bytes); at; at = index->entries[at - 1].parent) {
        const struct rule_index_entry *entry = &index->entries[at - 1];
        if (!is_allowed[entry->rule] || !takes(entry, name, n_bytes))
            continue;
        rule_choice_offer(choice, rules, entry->rule);
        is_taken = true;
    }
    return is_taken;
}
