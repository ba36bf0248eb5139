/* SPDX-License-Identifier: MIT */
#include "encoder/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoder/profile.pb-c.h"
#include "encoder/reader_ids.h"
#include "encoder/reader_input.h"
#include "encoder/reader_memory.h"

/* What profile_read hands out is the first member; profile_free finds the rest behind it. */
struct reader {
    struct profile_data data;
    struct arena arena;
    const char *name;
    char *error;
    const Pprof__Profile *message;
    struct id_map mapping_ids, location_ids, function_ids;
};

#define damaged(reader, ...) input_error((reader)->error, -EBADMSG, (reader)->name, __VA_ARGS__)

static int no_memory(struct reader *reader)
{
    return input_error(reader->error, -ENOMEM, reader->name, "not enough memory to read it");
}

static void *take(void *arena, size_t n_bytes)
{
    return arena_take(arena, 1, n_bytes);
}

static void leave(void *arena, void *piece)
{
    (void)arena; /* goes with the rest of the arena */
    (void)piece;
}

static int unpack(struct reader *reader, const struct input *input)
{
    ProtobufCAllocator allocator = {take, leave, &reader->arena};
    const Pprof__Profile *message =
        pprof__profile__unpack(&allocator, input->n_bytes, input->bytes);
    if (!message || message->n_string_table == 0 || message->n_sample_type == 0)
        return damaged(reader, "not a pprof profile: expected profile.proto, gzip'ed or plain");
    if (message->string_table[0][0] != '\0')
        return damaged(reader, "damaged profile: the first string is not empty; take it again");
    reader->message = message;
    return 0;
}

static int text_of(struct reader *reader, int64_t index, const char **ret_text)
{
    if (index < 0 || (uint64_t)index >= reader->message->n_string_table)
        return damaged(reader, "damaged profile: string %" PRId64 " of %zu; take it again", index,
                       reader->message->n_string_table);
    *ret_text = reader->message->string_table[index];
    return 0;
}

static int read_value_type(struct reader *reader, const Pprof__ValueType *from,
                           struct profile_value_type *ret_type)
{
    int error = text_of(reader, from ? from->type : 0, &ret_type->type);
    return error ? error : text_of(reader, from ? from->unit : 0, &ret_type->unit);
}

static int read_head(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    struct profile_data *data = &reader->data;
    struct profile_value_type *types =
        arena_take(&reader->arena, from->n_sample_type, sizeof(*types));
    if (!types)
        return no_memory(reader);
    int error = read_value_type(reader, from->period_type, &data->period_type);
    for (size_t i = 0; i < from->n_sample_type && !error; i++)
        error = read_value_type(reader, from->sample_type[i], &types[i]);
    if (!error)
        error = text_of(reader, from->default_sample_type, &data->default_type);
    if (!error)
        error = text_of(reader, from->drop_frames, &data->drop_frames);
    if (!error)
        error = text_of(reader, from->keep_frames, &data->keep_frames);
    data->value_types = types;
    data->n_value_types = from->n_sample_type;
    data->period = from->period;
    data->time_nanos = from->time_nanos;
    data->duration_nanos = from->duration_nanos;
    return error;
}

static int read_comments(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    const char **comments = arena_take(&reader->arena, from->n_comment, sizeof(*comments));
    int error = comments ? 0 : no_memory(reader);
    for (size_t i = 0; i < from->n_comment && !error; i++)
        error = text_of(reader, from->comment[i], &comments[i]);
    reader->data.comments = comments;
    reader->data.n_comments = from->n_comment;
    return error;
}

static int read_mappings(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    struct read_mapping *to = arena_take(&reader->arena, from->n_mapping, sizeof(*to));
    int error = to && id_map_begin(&reader->mapping_ids, &reader->arena, from->n_mapping)
                    ? 0
                    : no_memory(reader);
    for (size_t i = 0; i < from->n_mapping && !error; i++) {
        const Pprof__Mapping *mapping = from->mapping[i];
        to[i] = (struct read_mapping){
            .start = mapping->memory_start,
            .limit = mapping->memory_limit,
            .offset = mapping->file_offset,
            .has_functions = mapping->has_functions,
            .has_filenames = mapping->has_filenames,
            .has_line_numbers = mapping->has_line_numbers,
            .has_inline_frames = mapping->has_inline_frames,
        };
        id_map_set(&reader->mapping_ids, i, mapping->id);
        error = text_of(reader, mapping->filename, &to[i].file);
        if (!error)
            error = text_of(reader, mapping->build_id, &to[i].build_id);
    }
    reader->data.mappings = to;
    reader->data.n_mappings = from->n_mapping;
    if (!error && !id_map_end(&reader->mapping_ids))
        error = damaged(reader, "damaged profile: a mapping id is 0 or twice there; take it again");
    return error;
}

static int read_functions(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    struct read_function *to = arena_take(&reader->arena, from->n_function, sizeof(*to));
    int error = to && id_map_begin(&reader->function_ids, &reader->arena, from->n_function)
                    ? 0
                    : no_memory(reader);
    for (size_t i = 0; i < from->n_function && !error; i++) {
        const Pprof__Function *function = from->function[i];
        to[i].start_line = function->start_line;
        id_map_set(&reader->function_ids, i, function->id);
        error = text_of(reader, function->name, &to[i].name);
        if (!error)
            error = text_of(reader, function->system_name, &to[i].system_name);
        if (!error)
            error = text_of(reader, function->filename, &to[i].file);
    }
    reader->data.functions = to;
    reader->data.n_functions = from->n_function;
    if (!error && !id_map_end(&reader->function_ids))
        error =
            damaged(reader, "damaged profile: a function id is 0 or twice there; take it again");
    return error;
}

static int read_lines(struct reader *reader, const Pprof__Location *from, struct read_location *to)
{
    struct read_line *lines = arena_take(&reader->arena, from->n_line, sizeof(*lines));
    if (!lines)
        return no_memory(reader);
    for (size_t i = 0; i < from->n_line; i++) {
        const Pprof__Line *line = from->line[i];
        size_t function = id_map_index(&reader->function_ids, line->function_id);
        if (function == ID_UNKNOWN)
            return damaged(reader,
                           "damaged profile: location %" PRIu64 " names function %" PRIu64
                           ", which is not there; take it again",
                           from->id, line->function_id);
        lines[i] = (struct read_line){&reader->data.functions[function], line->line, line->column};
    }
    to->lines = lines;
    to->n_lines = from->n_line;
    return 0;
}

static int read_location(struct reader *reader, const Pprof__Location *from,
                         struct read_location *to)
{
    size_t mapping = id_map_index(&reader->mapping_ids, from->mapping_id);
    if (mapping == ID_UNKNOWN && from->mapping_id != 0)
        return damaged(reader,
                       "damaged profile: location %" PRIu64 " names mapping %" PRIu64
                       ", which is not there; take it again",
                       from->id, from->mapping_id);
    to->address = from->address;
    to->is_folded = from->is_folded;
    to->mapping = mapping == ID_UNKNOWN ? NULL : &reader->data.mappings[mapping];
    return read_lines(reader, from, to);
}

static int read_locations(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    struct read_location *to = arena_take(&reader->arena, from->n_location, sizeof(*to));
    int error = to && id_map_begin(&reader->location_ids, &reader->arena, from->n_location)
                    ? 0
                    : no_memory(reader);
    for (size_t i = 0; i < from->n_location && !error; i++) {
        id_map_set(&reader->location_ids, i, from->location[i]->id);
        error = read_location(reader, from->location[i], &to[i]);
    }
    reader->data.locations = to;
    reader->data.n_locations = from->n_location;
    if (!error && !id_map_end(&reader->location_ids))
        error =
            damaged(reader, "damaged profile: a location id is 0 or twice there; take it again");
    return error;
}

static int read_label(struct reader *reader, const Pprof__Label *from, struct read_label *to)
{
    const char *text = NULL;
    int error = text_of(reader, from->key, &to->key);
    if (!error)
        error = text_of(reader, from->num_unit, &to->unit);
    if (!error)
        error = text_of(reader, from->str, &text);
    to->text = from->str ? text : NULL;
    to->number = from->num;
    return error;
}

static int read_labels(struct reader *reader, const Pprof__Sample *from, struct read_sample *to)
{
    struct read_label *labels = arena_take(&reader->arena, from->n_label, sizeof(*labels));
    int error = labels ? 0 : no_memory(reader);
    for (size_t i = 0; i < from->n_label && !error; i++)
        error = read_label(reader, from->label[i], &labels[i]);
    to->labels = labels;
    to->n_labels = from->n_label;
    return error;
}

static int read_stack(struct reader *reader, size_t sample, const Pprof__Sample *from,
                      struct read_sample *to)
{
    const struct read_location **locations =
        arena_take(&reader->arena, from->n_location_id, sizeof(*locations));
    if (!locations)
        return no_memory(reader);
    for (size_t i = 0; i < from->n_location_id; i++) {
        size_t location = id_map_index(&reader->location_ids, from->location_id[i]);
        if (location == ID_UNKNOWN)
            return damaged(reader,
                           "damaged profile: sample %zu names location %" PRIu64
                           ", which is not there; take it again",
                           sample, from->location_id[i]);
        locations[i] = &reader->data.locations[location];
    }
    to->locations = locations;
    to->n_locations = from->n_location_id;
    return 0;
}

static int read_samples(struct reader *reader)
{
    const Pprof__Profile *from = reader->message;
    struct read_sample *to = arena_take(&reader->arena, from->n_sample, sizeof(*to));
    int error = to ? 0 : no_memory(reader);
    for (size_t i = 0; i < from->n_sample && !error; i++) {
        const Pprof__Sample *sample = from->sample[i];
        to[i].values = sample->value;
        if (sample->n_value != from->n_sample_type)
            return damaged(reader,
                           "damaged profile: sample %zu has %zu values of %zu; take it again", i,
                           sample->n_value, from->n_sample_type);
        error = read_stack(reader, i, sample, &to[i]);
        if (!error)
            error = read_labels(reader, sample, &to[i]);
    }
    reader->data.samples = to;
    reader->data.n_samples = from->n_sample;
    return error;
}

/* What is pointed to comes before what points to it. */
static int read_message(struct reader *reader)
{
    int (*const steps[])(struct reader *) = {read_head,      read_comments,  read_mappings,
                                             read_functions, read_locations, read_samples};
    int error = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !error; i++)
        error = steps[i](reader);
    return error;
}

int profile_read_bytes(const char *name, const void *bytes, size_t n_bytes, char *error,
                       struct profile_data **ret_profile)
{
    struct input input;
    int result = input_inflate(name, bytes, n_bytes, error, &input);
    if (result)
        return result;
    struct reader *reader = calloc(1, sizeof(*reader));
    if (!reader) {
        free(input.bytes);
        return input_error(error, -ENOMEM, name, "not enough memory to read it");
    }
    reader->name = name;
    reader->error = error;
    result = unpack(reader, &input);
    free(input.bytes);
    if (!result)
        result = read_message(reader);
    if (result)
        profile_free(&reader->data);
    else
        *ret_profile = &reader->data;
    return result;
}

int profile_read(const char *path, char *error, struct profile_data **ret_profile)
{
    struct input input;
    int result = input_read(path, error, &input);
    if (result)
        return result;
    result = profile_read_bytes(strcmp(path, "-") == 0 ? "standard input" : path, input.bytes,
                                input.n_bytes, error, ret_profile);
    free(input.bytes);
    return result;
}

void profile_free(struct profile_data *profile)
{
    struct reader *reader = (struct reader *)profile;
    if (!reader)
        return;
    arena_end(&reader->arena);
    free(reader);
}
