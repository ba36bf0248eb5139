/* SPDX-License-Identifier: MIT */
#include "encoder/profile_writer.h"

#include <errno.h>
#include <string.h>

#include "base/attributes.h"
#include "base/sys.h"
#include "encoder/frames.h"
#include "encoder/gzip.h"
#include "encoder/names.h"
#include "encoder/profile.pb-c.h"
#include "encoder/scratch.h"
#include "encoder/strings.h"

/* Fields of Profile. */
enum {
    SAMPLE_FIELD = 2,
    MAPPING_FIELD = 3,
    LOCATION_FIELD = 4,
    FUNCTION_FIELD = 5,
    STRING_FIELD = 6
};

/* A varint has at most 10 bytes; a field at most one more for its tag, or two for tag and a length
 * below 128. */
enum { MAX_VALUE_TYPES = 16, VARINT_BYTES = 10, FIELD_BYTES = 2 + VARINT_BYTES, PREFIX_BYTES = 11 };
enum { LABEL_BYTES = 5 * FIELD_BYTES, SMALL_MESSAGE_BYTES = 16 * FIELD_BYTES };

/* Everything grows in scratch; the arrays keep their size from one message to the next. */
struct profile_writer {
    int error; /* the first; sticks */
    struct gzip *gzip;
    struct scratch scratch;
    struct strings strings;
    struct frames locations;          /* id of a frame = id of its location */
    struct frames symbol_frames;      /* frames of PROFILE_LABEL_SYMBOL */
    struct scratch_array symbol_text; /* uint32_t: string index for each of them */
    struct symbols *symbols;          /* NULL until first needed */
    struct scratch_array mappings;    /* struct profile_mapping */
    size_t n_mappings;
    uint32_t n_functions;
    size_t n_value_types;
    struct scratch_array packed; /* one message on its way out */
    struct scratch_array ids;    /* uint64_t: of the last sample's locations */
    struct scratch_array frames; /* uint64_t: its frames */
    size_t n_frames;
    struct scratch_array labels; /* Pprof__Label */
    struct scratch_array label_pointers;
};

static void fail(struct profile_writer *writer, int error)
{
    if (!writer->error)
        writer->error = error;
}

static bool reserve(struct profile_writer *writer, struct scratch_array *array, size_t n_bytes)
{
    bool did = scratch_reserve(&writer->scratch, array, n_bytes);
    if (unlikely(!did))
        fail(writer, -ENOMEM);
    return did;
}

static void put(struct profile_writer *writer, const void *bytes, size_t n_bytes)
{
    if (!writer->error)
        writer->error = gzip_write(writer->gzip, bytes, n_bytes);
}

/* Tag and length of a field that is a message or a string. */
static size_t write_prefix(uint8_t *to, unsigned field, size_t n_bytes)
{
    size_t n = 0;
    to[n++] = (uint8_t)(field << 3 | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED);
    for (; n_bytes >= 0x80; n_bytes >>= 7)
        to[n++] = (uint8_t)(n_bytes | 0x80);
    to[n++] = (uint8_t)n_bytes;
    return n;
}

/* Packs without measuring first, which would cost as much again: max_bytes is an upper bound. The
 * prefix goes right before the message once its length is known. */
static void put_message(struct profile_writer *writer, unsigned field,
                        const ProtobufCMessage *message, size_t max_bytes)
{
    uint8_t prefix[PREFIX_BYTES];
    if (!reserve(writer, &writer->packed, PREFIX_BYTES + max_bytes))
        return;
    uint8_t *packed = (uint8_t *)writer->packed.start + PREFIX_BYTES;
    size_t n_bytes = protobuf_c_message_pack(message, packed);
    size_t n_prefix = write_prefix(prefix, field, n_bytes);
    memcpy(packed - n_prefix, prefix, n_prefix);
    put(writer, packed - n_prefix, n_prefix + n_bytes);
}

/* Part of the Profile message itself: parts of a message add up to it. */
static void put_part(struct profile_writer *writer, const Pprof__Profile *part)
{
    size_t n_bytes = protobuf_c_message_get_packed_size(&part->base);
    if (reserve(writer, &writer->packed, n_bytes))
        put(writer, writer->packed.start,
            protobuf_c_message_pack(&part->base, writer->packed.start));
}

static void put_string(struct profile_writer *writer, struct profile_text text)
{
    uint8_t prefix[PREFIX_BYTES];
    put(writer, prefix, write_prefix(prefix, STRING_FIELD, text.n_bytes));
    put(writer, text.bytes, text.n_bytes);
}

/* A text's index in the string table, which it enters when it is first seen. */
static int64_t string_of(struct profile_writer *writer, struct profile_text text)
{
    bool is_new;
    int64_t index = strings_index(&writer->strings, text, &is_new);
    if (unlikely(index < 0)) {
        fail(writer, (int)index);
        return 0;
    }
    if (unlikely(is_new))
        put_string(writer, strings_at(&writer->strings, index)->text);
    return index;
}

static int64_t string_of_c(struct profile_writer *writer, const char *text)
{
    return text ? string_of(writer, (struct profile_text){text, strlen(text)}) : 0;
}

static Pprof__ValueType value_type(struct profile_writer *writer, struct profile_value_type type)
{
    Pprof__ValueType ret = PPROF__VALUE_TYPE__INIT;
    ret.type = string_of_c(writer, type.type);
    ret.unit = string_of_c(writer, type.unit);
    return ret;
}

static void put_head(struct profile_writer *writer, const struct profile_head *head)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    Pprof__ValueType types[MAX_VALUE_TYPES], *type_pointers[MAX_VALUE_TYPES];
    Pprof__ValueType period_type = value_type(writer, head->period_type);
    for (size_t i = 0; i < head->n_value_types; i++) {
        types[i] = value_type(writer, head->value_types[i]);
        type_pointers[i] = &types[i];
    }
    part.n_sample_type = head->n_value_types;
    part.sample_type = type_pointers;
    part.default_sample_type = string_of_c(writer, head->default_type);
    part.period_type = period_type.type ? &period_type : NULL;
    part.period = head->period;
    part.time_nanos = head->time_nanos;
    part.duration_nanos = head->duration_nanos;
    put_part(writer, &part);
}

struct profile_writer *profile_begin(struct profile_sink *sink, const struct profile_head *head)
{
    struct profile_writer *writer = sys_map(sizeof(*writer));
    if (!writer)
        return NULL;
    writer->locations.scratch = writer->symbol_frames.scratch = &writer->scratch;
    writer->n_value_types = head->n_value_types;
    writer->gzip = gzip_begin(&writer->scratch, sink);
    if (!writer->gzip || !strings_begin(&writer->strings, &writer->scratch)) {
        writer->error = -ENOMEM;
        profile_end(writer);
        return NULL;
    }
    put_string(writer, (struct profile_text){"", 0});
    if (head->n_value_types <= MAX_VALUE_TYPES)
        put_head(writer, head);
    else
        fail(writer, -EINVAL);
    return writer;
}

size_t profile_peak_bytes(const struct profile_writer *writer)
{
    return writer->scratch.peak_bytes + sizeof(*writer);
}

static int64_t hex_string_of(struct profile_writer *writer, const uint8_t *bytes, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * BUILD_ID_MAX_BYTES];
    if (n_bytes > BUILD_ID_MAX_BYTES)
        n_bytes = BUILD_ID_MAX_BYTES;
    for (size_t i = 0; i < n_bytes; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    return string_of(writer, (struct profile_text){hex, 2 * n_bytes});
}

/* The writer's own copy, for the names at the end. */
static bool keep_mapping(struct profile_writer *writer, const struct profile_mapping *mapping)
{
    size_t n_file = mapping->file ? strlen(mapping->file) + 1 : 0;
    char *copy = scratch_take(&writer->scratch, n_file + mapping->build_id_bytes);
    if (!reserve(writer, &writer->mappings, (writer->n_mappings + 1) * sizeof(*mapping)))
        return false;
    if (!copy) {
        fail(writer, -ENOMEM);
        return false;
    }
    struct profile_mapping *kept =
        (struct profile_mapping *)writer->mappings.start + writer->n_mappings++;
    *kept = *mapping;
    if (n_file)
        kept->file = memcpy(copy, mapping->file, n_file);
    if (mapping->build_id_bytes)
        kept->build_id = memcpy(copy + n_file, mapping->build_id, mapping->build_id_bytes);
    return true;
}

void profile_add_mapping(struct profile_writer *writer, const struct profile_mapping *mapping)
{
    Pprof__Mapping message = PPROF__MAPPING__INIT;
    if (writer->error || !keep_mapping(writer, mapping))
        return;
    message.id = writer->n_mappings;
    message.memory_start = mapping->start;
    message.memory_limit = mapping->limit;
    message.file_offset = mapping->offset;
    message.filename = string_of_c(writer, mapping->file);
    message.build_id = hex_string_of(writer, mapping->build_id, mapping->build_id_bytes);
    put_message(writer, MAPPING_FIELD, &message.base, SMALL_MESSAGE_BYTES);
}

void profile_add_comment(struct profile_writer *writer, const char *text, size_t n_bytes)
{
    Pprof__Profile part = PPROF__PROFILE__INIT;
    if (writer->error)
        return;
    int64_t comment = string_of(writer, (struct profile_text){text, n_bytes});
    part.n_comment = 1;
    part.comment = &comment;
    put_part(writer, &part);
}

static const struct profile_mapping *mapping_of(const struct profile_writer *writer, uint64_t frame)
{
    uint64_t id = frame >> PROFILE_FRAME_ADDRESS_BITS;
    if (id == 0 || id > writer->n_mappings)
        return NULL;
    return (const struct profile_mapping *)writer->mappings.start + (id - 1);
}

static uint64_t address_of(uint64_t frame)
{
    return frame & ((UINT64_C(1) << PROFILE_FRAME_ADDRESS_BITS) - 1);
}

static bool have_symbols(struct profile_writer *writer)
{
    if (!writer->symbols)
        writer->symbols = scratch_take(&writer->scratch, sizeof(*writer->symbols));
    if (!writer->symbols)
        fail(writer, -ENOMEM);
    return writer->symbols != NULL;
}

/* A look-up in a file costs far more than a sample: each frame is looked up once. */
static int64_t symbol_string_of(struct profile_writer *writer, uint64_t frame)
{
    uint32_t id = frames_id(&writer->symbol_frames, frame);
    if (id == 0)
        fail(writer, -ENOMEM);
    if (id == 0 || !reserve(writer, &writer->symbol_text, id * sizeof(uint32_t)))
        return 0;
    uint32_t *text = (uint32_t *)writer->symbol_text.start + (id - 1);
    if (*text == 0 && have_symbols(writer))
        *text = (uint32_t)string_of(writer, name_of_frame(writer->symbols,
                                                          mapping_of(writer, frame),
                                                          address_of(frame)));
    return *text;
}

static void fill_label(struct profile_writer *writer, Pprof__Label *to,
                       const struct profile_label *label)
{
    *to = (Pprof__Label)PPROF__LABEL__INIT;
    to->key = string_of(writer, label->key);
    if (label->kind == PROFILE_LABEL_NUMBER) {
        to->num = label->number;
        to->num_unit = string_of(writer, label->text);
    } else if (label->kind == PROFILE_LABEL_SYMBOL) {
        to->str = symbol_string_of(writer, label->frame);
    } else {
        to->str = string_of(writer, label->text);
    }
}

/* An empty text is no label. */
static bool is_label(const struct profile_label *label)
{
    return label->kind != PROFILE_LABEL_TEXT || label->text.n_bytes > 0;
}

static bool fill_labels(struct profile_writer *writer, Pprof__Sample *sample,
                        const struct profile_label *labels, size_t n_labels)
{
    if (!reserve(writer, &writer->labels, n_labels * sizeof(Pprof__Label)) ||
        !reserve(writer, &writer->label_pointers, n_labels * sizeof(Pprof__Label *)))
        return false;
    Pprof__Label *to = writer->labels.start;
    sample->label = writer->label_pointers.start;
    for (size_t i = 0; i < n_labels; i++) {
        if (!is_label(&labels[i]))
            continue;
        fill_label(writer, &to[i], &labels[i]);
        sample->label[sample->n_label++] = &to[i];
    }
    return true;
}

/* How many outermost frames the stack has in common with the last one. */
static size_t common_frames(const struct profile_writer *writer, const uint64_t *frames,
                            size_t n_frames)
{
    const uint64_t *last = (const uint64_t *)writer->frames.start + writer->n_frames;
    size_t n = 0, n_max = n_frames < writer->n_frames ? n_frames : writer->n_frames;
    frames += n_frames;
    while (n < n_max && frames[-1 - (ptrdiff_t)n] == last[-1 - (ptrdiff_t)n])
        n++;
    return n;
}

/* Samples come stack by stack, so most of a stack is the last one's: those ids are kept. */
static bool fill_locations(struct profile_writer *writer, Pprof__Sample *sample,
                           const uint64_t *frames, size_t n_frames)
{
    size_t n_bytes = n_frames * sizeof(*frames);
    if (!reserve(writer, &writer->ids, n_bytes + 1) ||
        !reserve(writer, &writer->frames, n_bytes + 1)) /* + 1: there for no frames, too */
        return false;
    size_t n_common = common_frames(writer, frames, n_frames), n_new = n_frames - n_common;
    uint64_t *ids = writer->ids.start;
    memmove(ids + n_new, ids + writer->n_frames - n_common, n_common * sizeof(*ids));
    for (size_t i = 0; i < n_new; i++) {
        ids[i] = frames_id(&writer->locations, frames[i]);
        if (unlikely(ids[i] == 0))
            fail(writer, -ENOMEM);
    }
    memcpy(writer->frames.start, frames, n_bytes);
    writer->n_frames = n_frames;
    sample->location_id = ids;
    sample->n_location_id = n_frames;
    return true;
}

void profile_add_sample(struct profile_writer *writer, const uint64_t *frames, size_t n_frames,
                        const int64_t *values, const struct profile_label *labels, size_t n_labels)
{
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    if (writer->error || !fill_locations(writer, &sample, frames, n_frames) ||
        !fill_labels(writer, &sample, labels, n_labels))
        return;
    sample.n_value = writer->n_value_types;
    sample.value = (int64_t *)values; /* packing only reads it */
    put_message(writer, SAMPLE_FIELD, &sample.base,
                SMALL_MESSAGE_BYTES + (n_frames + sample.n_value) * VARINT_BYTES +
                    sample.n_label * LABEL_BYTES);
}

/* The function of that name in that mapping: names_find goes mapping by mapping, so remembering
 * the last one is enough. */
static int64_t function_of(void *context, uint32_t mapping, struct profile_text name)
{
    struct profile_writer *writer = context;
    Pprof__Function message = PPROF__FUNCTION__INIT;
    int64_t string = string_of(writer, name);
    struct string_entry *entry = strings_at(&writer->strings, string);
    if (writer->error)
        return writer->error;
    if (entry->function_id && entry->function_mapping == mapping)
        return entry->function_id;
    entry->function_mapping = mapping;
    entry->function_id = ++writer->n_functions;
    message.id = entry->function_id;
    message.name = message.system_name = string;
    put_message(writer, FUNCTION_FIELD, &message.base, SMALL_MESSAGE_BYTES);
    return message.id;
}

static void put_location(struct profile_writer *writer, uint32_t id, uint32_t function)
{
    Pprof__Location message = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
    uint64_t frame = frames_at(&writer->locations, id);
    const struct profile_mapping *mapping = mapping_of(writer, frame);
    message.id = id;
    message.mapping_id = mapping ? frame >> PROFILE_FRAME_ADDRESS_BITS : 0;
    line.function_id = function;
    message.line = &lines;
    message.n_line = function != 0;
    /* A named frame of no mapping is a pseudo frame. */
    message.address = function && !mapping ? 0 : address_of(frame);
    put_message(writer, LOCATION_FIELD, &message.base, SMALL_MESSAGE_BYTES);
}

static void put_locations(struct profile_writer *writer)
{
    size_t n = writer->locations.n_seen;
    struct scratch_array functions = {NULL, 0};
    if (n == 0 || !have_symbols(writer) || !reserve(writer, &functions, n * sizeof(uint32_t)))
        return;
    struct names_job job = {&writer->locations, writer->mappings.start, writer->n_mappings,
                            writer->symbols,    function_of,            writer,
                            functions.start};
    int error = names_find(&job, &writer->scratch);
    if (error)
        fail(writer, error);
    for (uint32_t id = 1; id <= n && !writer->error; id++)
        put_location(writer, id, job.functions[id - 1]);
    scratch_drop(&writer->scratch, &functions);
}

static void drop_all(struct profile_writer *writer)
{
    struct scratch_array *const arrays[] = {&writer->symbol_text, &writer->mappings,
                                            &writer->packed,      &writer->ids,
                                            &writer->frames,      &writer->labels,
                                            &writer->label_pointers};
    for (size_t i = 0; i < ARRAY_LENGTH(arrays); i++)
        scratch_drop(&writer->scratch, arrays[i]);
    frames_end(&writer->locations);
    frames_end(&writer->symbol_frames);
    strings_end(&writer->strings);
    scratch_end(&writer->scratch);
}

int profile_end(struct profile_writer *writer)
{
    if (!writer->error)
        put_locations(writer);
    if (!writer->error)
        fail(writer, gzip_end(writer->gzip));
    int error = writer->error;
    drop_all(writer);
    sys_unmap(writer, sizeof(*writer));
    return error;
}
