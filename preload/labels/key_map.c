/* SPDX-License-Identifier: MIT */
#include "labels/key_map.h"

#include <string.h>

/* Field numbers of the OpenTelemetry messages. */
enum {
    CONTEXT_ATTRIBUTES = 2,
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
    VALUE_STRING = 1,
    VALUE_ARRAY = 5,
    ARRAY_VALUES = 1,
};

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct bytes {
    const uint8_t *at, *end;
};

struct field {
    uint64_t number;
    struct bytes bytes; /* empty for wire types that have none */
    bool has_bytes;
};

static bool next_varint(struct bytes *in, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        *ret |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool skip(struct bytes *in, uint64_t n_bytes)
{
    if (n_bytes > (size_t)(in->end - in->at))
        return false;
    in->at += n_bytes;
    return true;
}

static bool next_value(struct bytes *in, unsigned wire_type, struct field *field)
{
    uint64_t number;
    switch (wire_type) {
    case WIRE_VARINT:
        return next_varint(in, &number);
    case WIRE_64:
        return skip(in, 8);
    case WIRE_32:
        return skip(in, 4);
    case WIRE_BYTES:
        if (!next_varint(in, &number))
            return false;
        field->has_bytes = true;
        field->bytes.at = in->at;
        if (!skip(in, number))
            return false;
        field->bytes.end = in->at;
        return true;
    default:
        return false;
    }
}

/* False at the end or, with *is_bad set, on what is no field. */
static bool next_field(struct bytes *in, struct field *field, bool *is_bad)
{
    uint64_t tag;
    *field = (struct field){0};
    *is_bad = false;
    if (in->at == in->end)
        return false;
    *is_bad = !next_varint(in, &tag) || tag >> 3 == 0 || !next_value(in, tag & 7, field);
    field->number = tag >> 3;
    return !*is_bad;
}

/* The last field of that number; absent: empty. */
static bool find_field(struct bytes in, uint64_t number, struct bytes *ret, bool *is_there)
{
    struct field field;
    bool is_bad;
    *is_there = false;
    while (next_field(&in, &field, &is_bad))
        if (field.number == number && field.has_bytes) {
            *ret = field.bytes;
            *is_there = true;
        }
    return !is_bad;
}

static void add_key(struct key_map *map, struct bytes name)
{
    size_t n_bytes = (size_t)(name.end - name.at);
    bool is_good = n_bytes <= LABEL_KEY_BYTES &&
                   !(n_bytes >= 7 && memcmp(name.at, "pprof::", 7) == 0);
    map->key_bytes[map->n_keys] = is_good ? (uint8_t)n_bytes : 0;
    if (is_good && n_bytes)
        memcpy(map->keys[map->n_keys], name.at, n_bytes);
    map->n_keys++;
}

/* Each value has its place, also one that is no string. */
static bool read_names(struct key_map *map, struct bytes array)
{
    struct field value;
    bool is_bad, is_there;
    while (next_field(&array, &value, &is_bad) && map->n_keys < KEY_MAP_MAX) {
        struct bytes name = {NULL, NULL};
        if (value.number != ARRAY_VALUES || !value.has_bytes)
            continue;
        if (!find_field(value.bytes, VALUE_STRING, &name, &is_there))
            return false;
        add_key(map, name);
    }
    return !is_bad;
}

static bool is_key_map(struct bytes key)
{
    static const char wanted[] = "threadlocal.attribute_key_map";
    return (size_t)(key.end - key.at) == sizeof wanted - 1 &&
           memcmp(key.at, wanted, sizeof wanted - 1) == 0;
}

static bool read_attribute(struct key_map *map, struct bytes pair)
{
    struct bytes key, value, array;
    bool is_there;
    if (!find_field(pair, PAIR_KEY, &key, &is_there))
        return false;
    if (!is_there || !is_key_map(key))
        return true;
    if (!find_field(pair, PAIR_VALUE, &value, &is_there))
        return false;
    if (!is_there)
        return true;
    if (!find_field(value, VALUE_ARRAY, &array, &is_there))
        return false;
    map->n_keys = 0;
    return !is_there || read_names(map, array);
}

bool key_map_parse(struct key_map *map, const uint8_t *payload, size_t n_bytes)
{
    struct bytes in = {payload, payload + n_bytes};
    struct field field;
    bool is_bad;
    map->n_keys = 0;
    while (next_field(&in, &field, &is_bad))
        if (field.number == CONTEXT_ATTRIBUTES && field.has_bytes &&
            !read_attribute(map, field.bytes))
            return false;
    return !is_bad;
}
