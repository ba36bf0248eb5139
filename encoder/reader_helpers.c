/* SPDX-License-Identifier: MIT
 * What a printer of profiles asks about one: indexes by name, labels by key, names of places. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "encoder/reader.h"

int profile_value_index(const struct profile_data *profile, const char *name)
{
    bool is_default = !name || name[0] == '\0';
    const char *wanted = is_default ? profile->default_type : name;
    for (size_t i = 0; i < profile->n_value_types; i++)
        if (strcmp(profile->value_types[i].type, wanted) == 0)
            return (int)i;
    return is_default ? (int)profile->n_value_types - 1 : -1;
}

const struct read_label *sample_label(const struct read_sample *sample, const char *key)
{
    for (size_t i = 0; i < sample->n_labels; i++)
        if (strcmp(sample->labels[i].key, key) == 0)
            return &sample->labels[i];
    return NULL;
}

const char *profile_comment(const struct profile_data *profile, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < profile->n_comments; i++)
        if (strncmp(profile->comments[i], key, n) == 0 && profile->comments[i][n] == '=')
            return profile->comments[i] + n + 1;
    return NULL;
}

static const char *function_name(const struct read_location *location, size_t line)
{
    if (line >= location->n_lines)
        return "";
    const struct read_function *function = location->lines[line].function;
    return function->name[0] ? function->name : function->system_name;
}

const char *location_name(const struct read_location *location, size_t line,
                          char buffer[LOCATION_NAME_BYTES])
{
    const struct read_mapping *mapping = location->mapping;
    const char *name = function_name(location, line);
    if (name[0])
        return name;
    if (!mapping || !mapping->file[0]) {
        snprintf(buffer, LOCATION_NAME_BYTES, "0x%" PRIx64, location->address);
        return buffer;
    }
    const char *slash = strrchr(mapping->file, '/');
    snprintf(buffer, LOCATION_NAME_BYTES, "%.280s+0x%" PRIx64, slash ? slash + 1 : mapping->file,
             location->address - mapping->start + mapping->offset);
    return buffer;
}
