/* SPDX-License-Identifier: MIT */
#include "encoder/messages.h"

#include <string.h>

#include "base/attributes.h"
#include "encoder/profile.pb-c.h"

/* Fields of Profile. */
enum { SAMPLE_FIELD = 2, MAPPING_FIELD = 3, LOCATION_FIELD = 4, FUNCTION_FIELD = 5 };

/* Upper bounds: a varint has at most 10 bytes, a number field one more for its tag, a field with a
 * short length two more. No small message has more than 10 fields. */
enum { VARINT_BYTES = 10, FIELD_BYTES = 2 + VARINT_BYTES };
enum { LABEL_BYTES = 5 * FIELD_BYTES, SMALL_MESSAGE_BYTES = 16 * FIELD_BYTES };

/* Packs without measuring first, which would cost as much again: max_bytes is an upper bound. The
 * prefix goes right before the message once its length is known. */
static void put_message(struct messages *messages, unsigned field, const ProtobufCMessage *message,
                        size_t max_bytes)
{
    uint8_t prefix[PREFIX_BYTES];
    if (!stream_reserve(messages->stream, &messages->packed, PREFIX_BYTES + max_bytes))
        return;
    uint8_t *packed = (uint8_t *)messages->packed.start + PREFIX_BYTES;
    size_t n_bytes = protobuf_c_message_pack(message, packed);
    size_t n_prefix = stream_prefix(prefix, field, n_bytes);
    memcpy(packed - n_prefix, prefix, n_prefix);
    stream_put(messages->stream, packed - n_prefix, n_prefix + n_bytes);
}

/* Part of the Profile message itself: parts of a message add up to it. */
static void put_part(struct messages *messages, const Pprof__Profile *part)
{
    size_t n_bytes = protobuf_c_message_get_packed_size(&part->base);
    if (stream_reserve(messages->stream, &messages->packed, n_bytes + 1))
        stream_put(messages->stream, messages->packed.start,
                   protobuf_c_message_pack(&part->base, messages->packed.start));
}

static Pprof__ValueType value_type(struct stream *stream, struct profile_value_type type)
{
    Pprof__ValueType ret = PPROF__VALUE_TYPE__INIT;
    ret.type = stream_c_text(stream, type.type);
    ret.unit = stream_c_text(stream, type.unit);
    return ret;
}

void message_head(struct messages *messages, const struct profile_head *head)
{
    struct stream *stream = messages->stream;
    Pprof__Profile part = PPROF__PROFILE__INIT;
    Pprof__ValueType types[MAX_VALUE_TYPES], *type_pointers[MAX_VALUE_TYPES];
    Pprof__ValueType period_type = value_type(stream, head->period_type);
    for (size_t i = 0; i < head->n_value_types; i++) {
        types[i] = value_type(stream, head->value_types[i]);
        type_pointers[i] = &types[i];
    }
    part.n_sample_type = head->n_value_types;
    part.sample_type = type_pointers;
    part.default_sample_type = stream_c_text(stream, head->default_type);
    part.period_type = period_type.type ? &period_type : NULL;
    part.period = head->period;
    part.time_nanos = head->time_nanos;
    part.duration_nanos = head->duration_nanos;
    put_part(messages, &part);
}

void message_comment(struct messages *messages, int64_t text)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    part.n_comment = 1;
    part.comment = &text;
    put_part(messages, &part);
}

void message_mapping(struct messages *messages, uint64_t id, const struct profile_mapping *mapping,
                     int64_t build_id)
{
    Pprof__Mapping message = PPROF__MAPPING__INIT;
    message.id = id;
    message.memory_start = mapping->start;
    message.memory_limit = mapping->limit;
    message.file_offset = mapping->offset;
    message.filename = stream_c_text(messages->stream, mapping->file);
    message.build_id = build_id;
    put_message(messages, MAPPING_FIELD, &message.base, SMALL_MESSAGE_BYTES);
}

static Pprof__Label *add_label(struct messages *messages, int64_t key)
{
    size_t n = messages->n_labels;
    if (!stream_reserve(messages->stream, &messages->labels, (n + 1) * sizeof(Pprof__Label)))
        return NULL;
    Pprof__Label *label = (Pprof__Label *)messages->labels.start + n;
    *label = (Pprof__Label)PPROF__LABEL__INIT;
    label->key = key;
    messages->n_labels++;
    return label;
}

void message_add_text_label(struct messages *messages, int64_t key, int64_t text)
{
    Pprof__Label *label = add_label(messages, key);
    if (label)
        label->str = text;
}

void message_add_number_label(struct messages *messages, int64_t key, int64_t number, int64_t unit)
{
    Pprof__Label *label = add_label(messages, key);
    if (!label)
        return;
    label->num = number;
    label->num_unit = unit;
}

/* Not kept while labels are added: their array moves when it grows. */
static Pprof__Label **label_pointers(struct messages *messages)
{
    size_t n = messages->n_labels;
    if (!stream_reserve(messages->stream, &messages->label_pointers, (n + 1) * sizeof(void *)))
        return NULL;
    Pprof__Label **pointers = messages->label_pointers.start;
    for (size_t i = 0; i < n; i++)
        pointers[i] = (Pprof__Label *)messages->labels.start + i;
    return pointers;
}

void message_sample(struct messages *messages, const uint64_t *locations, size_t n_locations,
                    const int64_t *values, size_t n_values)
{
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    sample.label = label_pointers(messages);
    sample.n_label = sample.label ? messages->n_labels : 0;
    sample.location_id = (uint64_t *)locations; /* packing only reads */
    sample.n_location_id = n_locations;
    sample.value = (int64_t *)values;
    sample.n_value = n_values;
    messages->n_labels = 0;
    put_message(messages, SAMPLE_FIELD, &sample.base,
                SMALL_MESSAGE_BYTES + (n_locations + n_values) * VARINT_BYTES +
                    sample.n_label * LABEL_BYTES);
}

void message_function(struct messages *messages, uint64_t id, int64_t name)
{
    Pprof__Function message = PPROF__FUNCTION__INIT;
    message.id = id;
    message.name = message.system_name = name;
    put_message(messages, FUNCTION_FIELD, &message.base, SMALL_MESSAGE_BYTES);
}

void message_location(struct messages *messages, uint64_t id, uint64_t mapping, uint64_t address,
                      uint64_t function)
{
    Pprof__Location message = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
    line.function_id = function;
    message.id = id;
    message.mapping_id = mapping;
    message.address = address;
    message.line = &lines;
    message.n_line = function != 0;
    put_message(messages, LOCATION_FIELD, &message.base, SMALL_MESSAGE_BYTES);
}

void messages_end(struct messages *messages)
{
    struct scratch *scratch = &messages->stream->scratch;
    scratch_drop(scratch, &messages->packed);
    scratch_drop(scratch, &messages->labels);
    scratch_drop(scratch, &messages->label_pointers);
}
