/* SPDX-License-Identifier: MIT
 * Writers of the label ABIs in miniature, byte by byte as the documents say: OpenTelemetry thread
 * context (a packed record) with its process context, and custom-labels. */
#ifndef LABELPROF_TEST_PROGRAMS_WRITERS_H
#define LABELPROF_TEST_PROGRAMS_WRITERS_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common.h"

#define UNUSED __attribute__((unused))

/* ---- OpenTelemetry ---- */

struct otel_record {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t flags;
    uint16_t attributes_bytes;
    uint8_t attributes[65535];
};
_Static_assert(__builtin_offsetof(struct otel_record, attributes) == 28, "packed");

static UNUSED void otel_add(struct otel_record *record, uint8_t key, const void *value, uint8_t n)
{
    uint8_t *at = record->attributes + record->attributes_bytes;
    CHECK(record->attributes_bytes + 2 + n <= 65535);
    at[0] = key;
    at[1] = n;
    memcpy(at + 2, value, n);
    record->attributes_bytes = (uint16_t)(record->attributes_bytes + 2 + n);
}

static UNUSED void otel_add_text(struct otel_record *record, uint8_t key, const char *value)
{
    otel_add(record, key, value, (uint8_t)strlen(value));
}

static UNUSED struct otel_record *otel_new(void)
{
    struct otel_record *record = calloc(1, sizeof *record);
    record->valid = 1;
    return record;
}

struct otel_header {
    char magic[8];
    uint32_t version, payload_bytes;
    uint64_t published_at_ns;
    const void *payload;
};

/* A protobuf field with bytes in it. Below 16384 bytes a length takes one or two. */
static size_t put_field(uint8_t *out, unsigned number, const void *bytes, size_t n)
{
    uint8_t *at = out;
    *at++ = (uint8_t)(number << 3 | 2);
    if (n >= 128)
        *at++ = (uint8_t)(n | 128), *at++ = (uint8_t)(n >> 7);
    else
        *at++ = (uint8_t)n;
    memcpy(at, bytes, n);
    return (size_t)(at - out) + n;
}

static size_t put_string_value(uint8_t *out, unsigned number, const char *text)
{
    uint8_t value[512];
    return put_field(out, number, value, put_field(value, 1, text, strlen(text)));
}

static size_t put_pair(uint8_t *out, const char *key, const uint8_t *value, size_t n)
{
    uint8_t pair[8192];
    size_t n_pair = put_field(pair, 1, key, strlen(key));
    n_pair += put_field(pair + n_pair, 2, value, n);
    return put_field(out, 2, pair, n_pair);
}

static size_t otel_payload(uint8_t *out, const char *const *keys, size_t n_keys)
{
    uint8_t values[8000], array[8100], version[64], resource[64];
    size_t n_values = 0;
    for (size_t i = 0; i < n_keys; i++)
        n_values += put_string_value(values + n_values, 1, keys[i]);
    size_t n_array = put_field(array, 5, values, n_values);
    size_t n = put_field(out, 1, resource, 0);
    n += put_pair(out + n, "threadlocal.schema_version", version,
                  put_field(version, 1, "tls_v1", 6));
    return n + put_pair(out + n, "threadlocal.attribute_key_map", array, n_array);
}

/* A page named as SDKs name it: by its memfd, since naming of anonymous memory is not everywhere. */
static UNUSED struct otel_header *otel_mapping(void)
{
    int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    void *mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(mapping != MAP_FAILED && close(fd) == 0);
    return mapping;
}

/* Publishes, or publishes anew, as the protocol has it: time 0, change, time. */
static UNUSED struct otel_header *otel_publish(const char *const *keys, size_t n_keys)
{
    static struct otel_header *header;
    static uint8_t payloads[2][16384];
    static unsigned n_published;
    uint8_t *payload = payloads[n_published++ % 2];
    if (!header)
        header = otel_mapping();
    __atomic_store_n(&header->published_at_ns, 0, __ATOMIC_SEQ_CST);
    memcpy(header->magic, "OTEL_CTX", 8);
    header->version = 2;
    header->payload_bytes = (uint32_t)otel_payload(payload, keys, n_keys);
    header->payload = payload;
    __atomic_store_n(&header->published_at_ns, n_published, __ATOMIC_SEQ_CST);
    return header;
}

/* ---- custom-labels ---- */

struct custom_string {
    size_t n_bytes;
    const char *bytes;
};

struct custom_label {
    struct custom_string key, value;
};

/* v1: what the slot points to. v0: the first two fields are the slot. */
struct custom_set {
    const struct custom_label *storage;
    size_t n_labels, capacity;
};

static UNUSED struct custom_label custom_label(const char *key, const char *value)
{
    return (struct custom_label){{key ? strlen(key) : 0, key}, {strlen(value), value}};
}

#endif
