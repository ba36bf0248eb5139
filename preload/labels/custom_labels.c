/* SPDX-License-Identifier: MIT
 * Reads the custom-labels ABI, v1 (a pointer to a label set) and v0 (the set itself).
 *
 * The first label of a key wins, a NULL key is a hole. Keys and values are any bytes.
 * Threads, signals, failure: labels/source.h. A set is cut at SOURCE_LABELS_MAX labels.
 */
#include <string.h>

#include "base/options.h"
#include "base/text.h"
#include "labels/readable.h"
#include "labels/source.h"

struct string {
    size_t n_bytes;
    const char *bytes; /* NULL: absent; no NUL at the end */
};

struct label {
    struct string key, value;
};

struct label_array {
    const struct label *labels;
    size_t n_labels;
};

static bool may_read(struct source_reading *reading, const void *start, size_t n_bytes)
{
    return readable((uintptr_t)start, n_bytes, &reading->n_probes_left);
}

/* A value is looked at one byte beyond its cut, to see whether a character ends there. */
static bool may_read_label(struct source_reading *reading, const struct label *label)
{
    size_t value_bytes = label->value.n_bytes;
    if (value_bytes > LABEL_VALUE_BYTES + 1)
        value_bytes = LABEL_VALUE_BYTES + 1;
    return label->key.n_bytes >= 1 && label->key.n_bytes <= LABEL_KEY_BYTES &&
           may_read(reading, label->key.bytes, label->key.n_bytes) &&
           (value_bytes == 0 || may_read(reading, label->value.bytes, value_bytes));
}

static bool add_label(struct source_reading *reading, const struct label *label)
{
    return reading->add(reading, label->key.bytes, label->key.n_bytes, label->value.bytes,
                        text_cut_at_character(label->value.bytes, label->value.n_bytes,
                                              LABEL_VALUE_BYTES));
}

static bool read_array(struct label_array array, struct source_reading *reading)
{
    bool is_any = false;
    size_t n = array.n_labels < SOURCE_LABELS_MAX ? array.n_labels : SOURCE_LABELS_MAX;
    reading->last_wins = false;
    for (size_t i = 0; i < n; i++) {
        struct label label;
        if (!may_read(reading, &array.labels[i], sizeof label))
            break;
        memcpy(&label, &array.labels[i], sizeof label);
        if (!label.key.bytes)
            continue;
        is_any = true;
        if (may_read_label(reading, &label) && !add_label(reading, &label))
            break;
    }
    return is_any;
}

/* The slot, and the set behind it, start with the array. */
static bool read_at(uintptr_t address, struct source_reading *reading)
{
    struct label_array array;
    if (!may_read(reading, (const void *)address, sizeof array))
        return false;
    memcpy(&array, (const void *)address, sizeof array);
    return read_array(array, reading);
}

bool custom_labels_read_v0(uintptr_t slot, struct source_reading *reading)
{
    return read_at(slot, reading);
}

bool custom_labels_read_v1(uintptr_t slot, struct source_reading *reading)
{
    uintptr_t set;
    if (!may_read(reading, (const void *)slot, sizeof set))
        return false;
    memcpy(&set, (const void *)slot, sizeof set);
    return set && read_at(set, reading);
}
