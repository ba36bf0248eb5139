/* SPDX-License-Identifier: MIT
 * The functions of a profile's names, see frame_names.h.
 */
#include "cli/frame_names.h"

#include <stdlib.h>
#include "cli/demangle.h"
#include "cli/memory.h"

struct frame_names frame_names_begin(const struct profile_data *profile, struct frame_filter filter)
{
    struct frame_names names = {.profile = profile, .filter = filter};
    names.items = xcalloc(profile->n_functions + profile->n_locations, sizeof *names.items);
    return names;
}

void frame_names_end(struct frame_names *names)
{
    size_t n_items = names->profile->n_functions + names->profile->n_locations;
    for (size_t i = 0; i < n_items; i++)
        free(names->items[i].name);
    free(names->items);
}

/* A function without a name goes by its location, as code without a function does. */
static size_t item_index(const struct frame_names *names, const struct read_location *location,
                         size_t line)
{
    const struct profile_data *profile = names->profile;
    const struct read_function *function =
        line < location->n_lines ? location->lines[line].function : NULL;
    if (function && (function->name[0] || function->system_name[0]))
        return (size_t)(function - profile->functions);
    return profile->n_functions + (size_t)(location - profile->locations);
}

static bool matches(const regex_t *pattern, const char *name)
{
    return regexec(pattern, name, 0, NULL, 0) == 0;
}

struct frame_name *frame_names_at(struct frame_names *names, const struct read_location *location,
                                  size_t line)
{
    struct frame_name *frame = &names->items[item_index(names, location, line)];
    if (!frame->name) {
        char buffer[LOCATION_NAME_BYTES];
        frame->name = demangle(location_name(location, line, buffer));
        frame->is_focused = !names->filter.focus || matches(names->filter.focus, frame->name);
        frame->is_ignored = names->filter.ignore && matches(names->filter.ignore, frame->name);
        frame->row = FRAME_NO_ROW;
    }
    return frame;
}

bool frame_names_select(struct frame_names *names, const struct read_sample *sample)
{
    bool is_focused = !names->filter.focus;
    if (is_focused && !names->filter.ignore)
        return true;
    for (size_t i = 0; i < sample->n_locations; i++) {
        const struct read_location *location = sample->locations[i];
        size_t line = 0;
        do {
            const struct frame_name *frame = frame_names_at(names, location, line);
            if (frame->is_ignored)
                return false;
            is_focused |= frame->is_focused;
        } while (++line < location->n_lines);
    }
    return is_focused;
}
