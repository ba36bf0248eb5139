/* SPDX-License-Identifier: MIT
 * Reads an OpenTelemetry thread context: the record `otel_thread_ctx_v1` points to.
 *
 * Attributes carry the index of their key; names come from the process context. An index without a
 * name is left out, and the names are asked for again. The last attribute of a key wins.
 * Threads, signals, failure: labels/source.h.
 */
#include <string.h>

#include "base/options.h"
#include "labels/process_context.h"
#include "labels/readable.h"
#include "labels/source.h"

enum { RECORD_IS_VALID = 1 };

/* As in memory: no padding. */
struct record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t trace_flags;
    uint16_t attributes_bytes;
};
_Static_assert(sizeof(struct record) == 28, "the ABI's packed header");

static bool is_zero(const uint8_t *bytes, size_t n_bytes)
{
    uint8_t any = 0;
    for (size_t i = 0; i < n_bytes; i++)
        any |= bytes[i];
    return any == 0;
}

static void add_id(struct source_reading *reading, const char *key, char *text,
                   const uint8_t *bytes, size_t n_bytes)
{
    if (is_zero(bytes, n_bytes))
        return;
    for (size_t i = 0; i < n_bytes; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    reading->add(reading, key, strlen(key), text, 2 * n_bytes);
}

/* datadog.local_root_span_id and its like: a series of its own for each value, as trace_id is. */
static bool is_id(const char *key, size_t key_bytes)
{
    return (key_bytes > 7 && memcmp(key + key_bytes - 7, "span_id", 7) == 0) ||
           (key_bytes > 8 && memcmp(key + key_bytes - 8, "trace_id", 8) == 0);
}

static void add_attribute(struct source_reading *reading, uint8_t key_index, const char *value,
                          size_t value_bytes)
{
    size_t key_bytes;
    const char *key = process_context_key(key_index, &key_bytes);
    if (key && key_bytes && (options.label_keys[0] || !is_id(key, key_bytes)))
        reading->add(reading, key, key_bytes, value, value_bytes);
}

static void read_attributes(struct source_reading *reading, const uint8_t *at, size_t n_bytes)
{
    while (n_bytes >= 2 && (size_t)at[1] + 2 <= n_bytes) {
        size_t entry_bytes = (size_t)at[1] + 2;
        add_attribute(reading, at[0], (const char *)at + 2, at[1]);
        at += entry_bytes;
        n_bytes -= entry_bytes;
    }
}

bool otel_read(uintptr_t slot, struct source_reading *reading)
{
    uintptr_t address;
    struct record record;
    if (!readable(slot, sizeof address, &reading->n_probes_left))
        return false;
    memcpy(&address, (const void *)slot, sizeof address);
    if (!address || !readable(address, sizeof record, &reading->n_probes_left))
        return false;
    memcpy(&record, (const void *)address, sizeof record);
    const uint8_t *attributes = (const uint8_t *)address + sizeof record;
    if (record.valid != RECORD_IS_VALID ||
        !readable((uintptr_t)attributes, record.attributes_bytes, &reading->n_probes_left))
        return false;
    reading->last_wins = true;
    add_id(reading, "trace_id", reading->hex, record.trace_id, sizeof record.trace_id);
    add_id(reading, "span_id", reading->hex + 2 * sizeof record.trace_id, record.span_id,
           sizeof record.span_id);
    read_attributes(reading, attributes, record.attributes_bytes);
    return record.attributes_bytes >= 2 || !is_zero(record.trace_id, sizeof record.trace_id);
}
