/* SPDX-License-Identifier: MIT */
#include "encoder/profile_writer.h"

#include <errno.h>
#include <string.h>

#include "base/attributes.h"
#include "base/sys.h"
#include "encoder/frames.h"
#include "encoder/messages.h"
#include "encoder/names.h"
#include "encoder/stream.h"

struct profile_writer {
    struct stream stream;
    struct messages messages;
    size_t n_value_types;
    struct frames locations;     /* id of a frame = id of its location */
    struct scratch_array ids;    /* uint64_t: locations of the last sample */
    struct scratch_array frames; /* uint64_t: its frames */
    size_t n_frames;
    struct scratch_array mappings; /* struct profile_mapping: of id i at i - 1 */
    size_t n_mappings;
    struct symbols *symbols;          /* NULL until first needed */
    struct frames symbol_frames;      /* frames of PROFILE_LABEL_SYMBOL */
    struct scratch_array symbol_text; /* uint32_t: string index for each of them; 0: not yet */
    uint32_t n_functions;
};

struct profile_writer *profile_begin(struct profile_sink *sink, const struct profile_head *head)
{
    struct profile_writer *writer = sys_map(sizeof(*writer));
    if (!writer)
        return NULL;
    struct scratch *scratch = &writer->stream.scratch;
    writer->messages.stream = &writer->stream;
    writer->locations.scratch = writer->symbol_frames.scratch = scratch;
    writer->n_value_types = head->n_value_types;
    if (!stream_begin(&writer->stream, sink)) {
        profile_end(writer);
        return NULL;
    }
    if (head->n_value_types <= MAX_VALUE_TYPES)
        message_head(&writer->messages, head);
    else
        stream_fail(&writer->stream, -EINVAL);
    return writer;
}

size_t profile_peak_bytes(const struct profile_writer *writer)
{
    return writer->stream.scratch.peak_bytes + sizeof(*writer);
}

static int64_t hex_text(struct stream *stream, const uint8_t *bytes, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * BUILD_ID_MAX_BYTES];
    if (n_bytes > BUILD_ID_MAX_BYTES)
        n_bytes = BUILD_ID_MAX_BYTES;
    for (size_t i = 0; i < n_bytes; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    return stream_text(stream, (struct profile_text){hex, 2 * n_bytes});
}

/* A copy of our own, for the names at the end. */
static bool keep_mapping(struct profile_writer *writer, const struct profile_mapping *mapping)
{
    size_t n_file = mapping->file ? strlen(mapping->file) + 1 : 0;
    char *copy = scratch_take(&writer->stream.scratch, n_file + mapping->build_id_bytes);
    if (!copy)
        stream_fail(&writer->stream, -ENOMEM);
    if (!copy || !stream_reserve(&writer->stream, &writer->mappings,
                                 (writer->n_mappings + 1) * sizeof(*mapping)))
        return false;
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
    if (writer->stream.error || !keep_mapping(writer, mapping))
        return;
    message_mapping(&writer->messages, writer->n_mappings, mapping,
                    hex_text(&writer->stream, mapping->build_id, mapping->build_id_bytes));
}

void profile_add_comment(struct profile_writer *writer, const char *text, size_t n_bytes)
{
    if (writer->stream.error)
        return;
    message_comment(&writer->messages,
                    stream_text(&writer->stream, (struct profile_text){text, n_bytes}));
}

static const struct profile_mapping *mapping_at(const struct profile_writer *writer, uint64_t frame)
{
    uint32_t id = frame_mapping(frame);
    if (id == 0 || id > writer->n_mappings)
        return NULL;
    return (const struct profile_mapping *)writer->mappings.start + (id - 1);
}

static bool have_symbols(struct profile_writer *writer)
{
    if (!writer->symbols)
        writer->symbols = scratch_take(&writer->stream.scratch, sizeof(*writer->symbols));
    if (!writer->symbols)
        stream_fail(&writer->stream, -ENOMEM);
    return writer->symbols != NULL;
}

/* A look-up in a file costs far more than a sample: each frame is looked up once. */
static int64_t symbol_text(struct profile_writer *writer, uint64_t frame)
{
    uint32_t id = frames_id(&writer->symbol_frames, frame);
    if (id == 0)
        stream_fail(&writer->stream, -ENOMEM);
    if (id == 0 || !have_symbols(writer) ||
        !stream_reserve(&writer->stream, &writer->symbol_text, id * sizeof(uint32_t)))
        return 0;
    uint32_t *text = (uint32_t *)writer->symbol_text.start + (id - 1);
    if (*text == 0)
        *text = (uint32_t)stream_text(
            &writer->stream,
            name_of_frame(writer->symbols, mapping_at(writer, frame), frame_address(frame)));
    return *text;
}

static void add_label(struct profile_writer *writer, const struct profile_label *label)
{
    struct messages *messages = &writer->messages;
    int64_t key = stream_text(&writer->stream, label->key);
    if (label->kind == PROFILE_LABEL_NUMBER)
        message_add_number_label(messages, key, label->number,
                                 stream_text(&writer->stream, label->text));
    else if (label->kind == PROFILE_LABEL_SYMBOL)
        message_add_text_label(messages, key, symbol_text(writer, label->frame));
    else if (label->text.n_bytes > 0) /* an empty text is no label */
        message_add_text_label(messages, key, stream_text(&writer->stream, label->text));
}

/* How many outermost frames the stack has in common with the last one. */
static size_t common_frames(const struct profile_writer *writer, const uint64_t *frames,
                            size_t n_frames)
{
    const uint64_t *last = (const uint64_t *)writer->frames.start + writer->n_frames;
    size_t n = 0, n_max = n_frames < writer->n_frames ? n_frames : writer->n_frames;
    while (n < n_max && frames[n_frames - 1 - n] == last[-1 - (ptrdiff_t)n])
        n++;
    return n;
}

/* The ids of the frames' locations, in writer->ids. Samples come stack by stack, so most of a
 * stack is the last one's: those ids are kept. */
static bool find_locations(struct profile_writer *writer, const uint64_t *frames, size_t n_frames)
{
    size_t n_bytes = n_frames * sizeof(*frames);
    if (!stream_reserve(&writer->stream, &writer->ids, n_bytes + 1) ||
        !stream_reserve(&writer->stream, &writer->frames, n_bytes + 1)) /* never no memory at all */
        return false;
    size_t n_common = common_frames(writer, frames, n_frames), n_new = n_frames - n_common;
    uint64_t *ids = writer->ids.start;
    memmove(ids + n_new, ids + writer->n_frames - n_common, n_common * sizeof(*ids));
    for (size_t i = 0; i < n_new; i++) {
        ids[i] = frames_id(&writer->locations, frames[i]);
        if (unlikely(ids[i] == 0))
            stream_fail(&writer->stream, -ENOMEM);
    }
    if (n_frames)
        memcpy(writer->frames.start, frames, n_bytes);
    writer->n_frames = n_frames;
    return true;
}

void profile_add_sample(struct profile_writer *writer, const uint64_t *frames, size_t n_frames,
                        const int64_t *values, const struct profile_label *labels, size_t n_labels)
{
    if (writer->stream.error || !find_locations(writer, frames, n_frames))
        return;
    for (size_t i = 0; i < n_labels; i++)
        add_label(writer, &labels[i]);
    message_sample(&writer->messages, writer->ids.start, n_frames, values, writer->n_value_types);
}

/* The function of that name in that mapping: names_find goes mapping by mapping, so remembering
 * the last one is enough. */
static int64_t function_of(void *context, uint32_t mapping, struct profile_text name)
{
    struct profile_writer *writer = context;
    int64_t text = stream_text(&writer->stream, name);
    struct string_entry *entry = strings_at(&writer->stream.strings, text);
    if (writer->stream.error)
        return writer->stream.error;
    if (entry->function_id && entry->function_mapping == mapping)
        return entry->function_id;
    entry->function_mapping = mapping;
    entry->function_id = ++writer->n_functions;
    message_function(&writer->messages, entry->function_id, text);
    return entry->function_id;
}

static void put_location(struct profile_writer *writer, uint32_t id, uint32_t function)
{
    uint64_t frame = frames_at(&writer->locations, id);
    bool is_mapped = mapping_at(writer, frame) != NULL;
    bool is_pseudo = !is_mapped && function; /* "[truncated]" is no address */
    message_location(&writer->messages, id, is_mapped ? frame_mapping(frame) : 0,
                     is_pseudo ? 0 : frame_address(frame), function);
}

static void put_locations(struct profile_writer *writer)
{
    size_t n = writer->locations.n_seen;
    struct scratch_array functions = {NULL, 0};
    if (n == 0 || !have_symbols(writer) ||
        !stream_reserve(&writer->stream, &functions, n * sizeof(uint32_t)))
        return;
    struct names_job job = {&writer->locations, writer->mappings.start,
                            writer->n_mappings, writer->symbols,
                            function_of,        writer,
                            functions.start};
    stream_fail(&writer->stream, names_find(&job, &writer->stream.scratch));
    for (uint32_t id = 1; id <= n && !writer->stream.error; id++)
        put_location(writer, id, job.functions[id - 1]);
    scratch_drop(&writer->stream.scratch, &functions);
}

int profile_end(struct profile_writer *writer)
{
    struct scratch_array *const arrays[] = {&writer->ids, &writer->frames, &writer->mappings,
                                            &writer->symbol_text};
    if (!writer->stream.error)
        put_locations(writer);
    messages_end(&writer->messages);
    for (size_t i = 0; i < ARRAY_LENGTH(arrays); i++)
        scratch_drop(&writer->stream.scratch, arrays[i]);
    frames_end(&writer->locations);
    frames_end(&writer->symbol_frames);
    int error = stream_end(&writer->stream);
    sys_unmap(writer, sizeof(*writer));
    return error;
}
