/* SPDX-License-Identifier: MIT
 * pprof in: a profile file as plain structures that need no further checks.
 *
 * Place: the command and the tests, never the library (malloc is used here).
 * What it promises: every pointer below is set or documented as NULL, every string is
 * NUL-terminated, every sample has exactly n_value_types values. Locations, functions and mappings
 * are arrays; samples and lines point into them, so (location - profile->locations) is an index.
 * Threads: a profile_data is never changed after profile_read; share it freely.
 * Failure: -errno and one line that says what is wrong and what to do. Never crashes on bad input.
 */
#ifndef LABELPROF_ENCODER_READER_H
#define LABELPROF_ENCODER_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/profile_writer.h"

struct read_mapping {
    uint64_t start, limit, offset;
    const char *file;     /* "" if unknown */
    const char *build_id; /* lower-case hex, "" if unknown */
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct read_function {
    const char *name, *system_name, *file; /* "" if unknown */
    int64_t start_line;
};

struct read_line {
    const struct read_function *function;
    int64_t line, column; /* 0: unknown */
};

struct read_location {
    uint64_t address;
    const struct read_mapping *mapping; /* NULL: none */
    const struct read_line *lines;      /* innermost inlined function first */
    size_t n_lines;                     /* 0: not symbolized */
    bool is_folded;
};

struct read_label {
    const char *key;
    const char *text; /* NULL: a numeric label */
    const char *unit; /* numeric labels; "" if none */
    int64_t number;
};

struct read_sample {
    const struct read_location *const *locations; /* leaf first */
    size_t n_locations;
    const int64_t *values; /* n_value_types of them */
    const struct read_label *labels;
    size_t n_labels;
};

struct profile_data {
    const struct profile_value_type *value_types;
    size_t n_value_types;                  /* at least 1 */
    const char *default_type;              /* "" if the file names none */
    struct profile_value_type period_type; /* "" and "" if none */
    int64_t period, time_nanos, duration_nanos;
    const char *drop_frames, *keep_frames;
    const char *const *comments;
    size_t n_comments;
    const struct read_mapping *mappings;
    size_t n_mappings;
    const struct read_location *locations;
    size_t n_locations;
    const struct read_function *functions;
    size_t n_functions;
    const struct read_sample *samples;
    size_t n_samples;
};

enum { PROFILE_ERROR_BYTES = 512 };

/* Reads gzip'ed or plain pprof from `path`, "-" for standard input. 0, or -errno with a line
 * (no newline, starts with the path) in error[PROFILE_ERROR_BYTES] and *ret_profile untouched. */
int profile_read(const char *path, char *error, struct profile_data **ret_profile);
/* The same from memory; `name` stands for the path in messages. */
int profile_read_bytes(const char *name, const void *bytes, size_t n_bytes, char *error,
                       struct profile_data **ret_profile);
void profile_free(struct profile_data *profile); /* NULL is fine */

/* Index of the value type called `name` ("inuse_space"); NULL or "": the profile's default, or
 * its last type if it names none (as pprof does). -1: no such type. */
int profile_value_index(const struct profile_data *profile, const char *name);

/* The sample's first label of that key, or NULL. */
const struct read_label *sample_label(const struct read_sample *sample, const char *key);

/* The value of a "key=value" comment, or NULL. */
const char *profile_comment(const struct profile_data *profile, const char *key);

/* A name to print. Function name if known, else base name of the file + 0x offset in it, else the
 * address in hex. Returns `buffer` or a string of the profile. Line 0 is the innermost function;
 * give 0 for the place itself when there are no lines. */
enum { LOCATION_NAME_BYTES = 320 };
const char *location_name(const struct read_location *location, size_t line,
                          char buffer[LOCATION_NAME_BYTES]);

#endif
