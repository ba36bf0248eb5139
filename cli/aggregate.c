/* SPDX-License-Identifier: MIT
 * Values of samples summed by name, see aggregate.h.
 */
#include "cli/aggregate.h"

#include <stdlib.h>
#include <string.h>
#include "cli/memory.h"
#include "cli/units.h"

int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

static size_t hash(const char *name)
{
    uint64_t value = 0xcbf29ce484222325; /* FNV-1a */
    for (; *name; name++)
        value = (value ^ (unsigned char)*name) * 0x100000001b3;
    return (size_t)(value ^ value >> 32);
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t *find_slot(const struct aggregate *aggregate, const char *name)
{
    size_t mask = aggregate->n_slots - 1;
    size_t at = hash(name) & mask;
    while (aggregate->slots[at] &&
           strcmp(aggregate->rows[aggregate->slots[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return &aggregate->slots[at];
}

static void grow_slots(struct aggregate *aggregate)
{
    free(aggregate->slots);
    aggregate->n_slots = aggregate->n_slots ? 2 * aggregate->n_slots : 64;
    aggregate->slots = xcalloc(aggregate->n_slots, sizeof *aggregate->slots);
    for (size_t i = 0; i < aggregate->n_rows; i++)
        *find_slot(aggregate, aggregate->rows[i].name) = (uint32_t)(i + 1);
}

size_t aggregate_row_of(struct aggregate *aggregate, const char *name)
{
    if (2 * (aggregate->n_rows + 1) > aggregate->n_slots)
        grow_slots(aggregate);
    uint32_t *slot = find_slot(aggregate, name);
    if (*slot == 0) {
        size_t n_rows = aggregate->n_rows;
        aggregate->rows = xgrow(aggregate->rows, n_rows, sizeof *aggregate->rows);
        aggregate->rows[n_rows] = (struct aggregate_row){.name = xstrdup(name)};
        aggregate->n_rows = n_rows + 1;
        *slot = (uint32_t)(n_rows + 1);
    }
    return *slot - 1;
}

static void add_flat(struct aggregate *aggregate, size_t row, int64_t value)
{
    aggregate->rows[row].flat = saturating_add(aggregate->rows[row].flat, value);
}

/* False if this sample has been counted there: recursion, or a label given twice. */
static bool add_cum(struct aggregate *aggregate, size_t row, int64_t value)
{
    struct aggregate_row *counted = &aggregate->rows[row];
    if (counted->last_sample == aggregate->n_samples)
        return false;
    counted->last_sample = aggregate->n_samples;
    counted->cum = saturating_add(counted->cum, value);
    return true;
}

/* Counts the sample; false if it has no part in the table. */
static bool begin_sample(struct aggregate *aggregate, const struct read_sample *sample,
                         int64_t value, struct frame_names *names)
{
    aggregate->n_samples++;
    aggregate->total = saturating_add(aggregate->total, value);
    if (value == 0 || !frame_names_select(names, sample))
        return false;
    aggregate->selected = saturating_add(aggregate->selected, value);
    return true;
}

/* The row of a frame's function, remembered with the frame. */
static size_t frame_row(struct aggregate *aggregate, struct frame_name *frame)
{
    if (frame->row == FRAME_NO_ROW)
        frame->row = aggregate_row_of(aggregate, frame->name);
    return frame->row;
}

static void add_stack(struct aggregate *aggregate, const struct read_sample *sample, int64_t value,
                      struct frame_names *names)
{
    bool is_leaf = true;
    for (size_t i = 0; i < sample->n_locations; i++) {
        const struct read_location *location = sample->locations[i];
        size_t line = 0;
        do {
            size_t row = frame_row(aggregate, frame_names_at(names, location, line));
            if (is_leaf)
                add_flat(aggregate, row, value);
            is_leaf = false;
            add_cum(aggregate, row, value);
        } while (++line < location->n_lines);
    }
    if (is_leaf) { /* a sample without a stack */
        size_t row = aggregate_row_of(aggregate, AGGREGATE_NONE);
        add_flat(aggregate, row, value);
        add_cum(aggregate, row, value);
    }
}

void aggregate_functions(struct aggregate *aggregate, const struct profile_data *profile,
                         size_t value_index, struct frame_names *names)
{
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->samples[i];
        int64_t value = sample->values[value_index];
        if (begin_sample(aggregate, sample, value, names))
            add_stack(aggregate, sample, value, names);
    }
}

static void add_value(struct aggregate *aggregate, const char *name, int64_t value)
{
    size_t row = aggregate_row_of(aggregate, name);
    if (add_cum(aggregate, row, value))
        add_flat(aggregate, row, value);
}

static void add_label(struct aggregate *aggregate, const struct read_label *label, int64_t value)
{
    char number[UNITS_MAX];
    if (!label->text)
        units_format_exact(number, label->number, label->unit);
    add_value(aggregate, label->text ? label->text : number, value);
}

/* True if the sample has the label, whether or not it has a part in the table. */
static bool add_labels(struct aggregate *aggregate, const struct read_sample *sample, int64_t value,
                       const char *key, bool is_selected)
{
    bool has_label = false;
    for (size_t i = 0; i < sample->n_labels; i++) {
        if (strcmp(sample->labels[i].key, key) != 0)
            continue;
        has_label = true;
        if (is_selected)
            add_label(aggregate, &sample->labels[i], value);
    }
    return has_label;
}

bool aggregate_label(struct aggregate *aggregate, const struct profile_data *profile,
                     size_t value_index, struct frame_names *names, const char *key)
{
    bool is_known = false;
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->samples[i];
        int64_t value = sample->values[value_index];
        bool is_selected = begin_sample(aggregate, sample, value, names);
        bool has_label = add_labels(aggregate, sample, value, key, is_selected);
        is_known |= has_label;
        if (is_selected && !has_label)
            add_value(aggregate, AGGREGATE_NONE, value);
    }
    return is_known;
}

/* The aggregate of a key, made at need; its sample number follows the profile's. */
static struct aggregate *key_values(struct aggregate_tags *tags, const char *key)
{
    size_t n_keys = tags->keys.n_rows;
    size_t row = aggregate_row_of(&tags->keys, key);
    if (row == n_keys) {
        tags->values = xgrow(tags->values, n_keys, sizeof *tags->values);
        tags->values[row] = (struct aggregate){0};
    }
    tags->values[row].n_samples = tags->keys.n_samples;
    return &tags->values[row];
}

void aggregate_all_labels(struct aggregate_tags *tags, const struct profile_data *profile,
                          size_t value_index)
{
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->samples[i];
        int64_t value = sample->values[value_index];
        tags->keys.n_samples++;
        tags->keys.total = saturating_add(tags->keys.total, value);
        for (size_t j = 0; j < sample->n_labels; j++) {
            const struct read_label *label = &sample->labels[j];
            struct aggregate *values = key_values(tags, label->key);
            if (add_cum(&tags->keys, aggregate_row_of(&tags->keys, label->key), value))
                values->total = saturating_add(values->total, value);
            if (value != 0)
                add_label(values, label, value);
        }
    }
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

static int compare_sizes(int64_t a, int64_t b)
{
    return (magnitude(a) < magnitude(b)) - (magnitude(a) > magnitude(b));
}

static int compare_by_flat(const void *left, const void *right)
{
    const struct aggregate_row *a = left, *b = right;
    int order = compare_sizes(a->flat, b->flat);
    if (order == 0)
        order = compare_sizes(a->cum, b->cum);
    return order ? order : strcmp(a->name, b->name);
}

static int compare_by_cum(const void *left, const void *right)
{
    const struct aggregate_row *a = left, *b = right;
    int order = compare_sizes(a->cum, b->cum);
    return order ? order : compare_by_flat(left, right);
}

void aggregate_sort(struct aggregate *aggregate, bool by_cum)
{
    if (aggregate->n_rows > 1)
        qsort(aggregate->rows, aggregate->n_rows, sizeof *aggregate->rows,
              by_cum ? compare_by_cum : compare_by_flat);
}

void aggregate_free(struct aggregate *aggregate)
{
    for (size_t i = 0; i < aggregate->n_rows; i++)
        free(aggregate->rows[i].name);
    free(aggregate->rows);
    free(aggregate->slots);
    *aggregate = (struct aggregate){0};
}
