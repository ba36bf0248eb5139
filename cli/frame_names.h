/* SPDX-License-Identifier: MIT
 * The functions of a profile's frames: their names as shown, and what focus and ignore say of them.
 *
 * Names are demangled and matched once per function, not once per sample.
 * Threads: one. Failure: none (memory.h).
 */
#ifndef LABELPROF_CLI_FRAME_NAMES_H
#define LABELPROF_CLI_FRAME_NAMES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include "encoder/reader.h"

#define FRAME_NO_ROW ((size_t)-1)

struct frame_name {
    char *name;
    bool is_focused, is_ignored;
    size_t row; /* for the aggregate in the making */
};

/* NULL: everything is focused, nothing ignored. */
struct frame_filter {
    const regex_t *focus, *ignore;
};

struct frame_names {
    const struct profile_data *profile;
    struct frame_filter filter;
    struct frame_name *items; /* the profile's functions, then its locations that have none */
};

struct frame_names frame_names_begin(const struct profile_data *profile,
                                     struct frame_filter filter);
void frame_names_end(struct frame_names *names);

/* Line 0 of a location without lines is the location itself. */
struct frame_name *frame_names_at(struct frame_names *names, const struct read_location *location,
                                  size_t line);

/* Does any frame match focus, and none ignore? */
bool frame_names_select(struct frame_names *names, const struct read_sample *sample);

#endif
