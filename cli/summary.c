/* SPDX-License-Identifier: MIT
 * What the header of a table says, see summary.h.
 */
#include "cli/summary.h"

#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/units.h"

/* Comments the library writes. Those without a text describe every profile; the others are a note
 * made of before, value and after, unless the value is 0. */
struct comment {
    const char *key, *before, *after;
    bool is_bytes;
};
static const struct comment known_comments[] = {
    {"labelprof_version", NULL, NULL, false},
    {"sample_bytes", NULL, NULL, false},
    {"cycle", NULL, NULL, false},
    {"command", NULL, NULL, false},
    {"samples", NULL, NULL, false},
    {"stacks", NULL, NULL, false},
    {"label_sets", NULL, NULL, false},
    {"memory_used_bytes", NULL, NULL, false},
    {"memory_budget_bytes", NULL, NULL, false},
    {"refused", "", " samples could not be started: totals are low by their share", false},
    {"lost", "", " events were lost: totals are off by their share", false},
    {"implied_frees", "", " frees went unseen until the address came back", false},
    {"interval_bytes_now", "the sampling interval grew to ",
     ", for memory near LABELPROF_MAX_MEMORY: totals stay right, with more noise", true},
    {"label_sets_over_limit", "more label sets than ",
     " (LABELPROF_MAX_LABEL_SETS): the rest allocates under (other)", false},
    {"rules_without_functions", "LABELPROF_RULES found no room for the functions of ",
     " modules (LABELPROF_MAX_MEMORY): there only module rules gave labels", false},
};

static const struct comment *find_comment(const char *text, size_t key_bytes)
{
    for (size_t i = 0; i < sizeof known_comments / sizeof *known_comments; i++)
        if (strlen(known_comments[i].key) == key_bytes &&
            memcmp(known_comments[i].key, text, key_bytes) == 0)
            return &known_comments[i];
    return NULL;
}

/* NULL: nothing a reader must know. A comment that is not in the table is something its writer
 * wanted read: shown as it is. */
static char *make_note(const char *text)
{
    size_t key_bytes = strcspn(text, "=");
    const char *value = text[key_bytes] ? text + key_bytes + 1 : "";
    const struct comment *known = find_comment(text, key_bytes);
    char size[UNITS_MAX];
    if (!known)
        return xstrdup(text);
    if (!known->before || strcmp(value, "0") == 0)
        return NULL;
    if (known->is_bytes) {
        units_format(size, strtoll(value, NULL, 10), "bytes");
        value = size;
    }
    return xformat("%s%s%s", known->before, value, known->after);
}

static void add_note(struct summary *summary, const char *path, const char *text)
{
    char *note = make_note(text);
    if (!note)
        return;
    char *line = summary->n_paths > 1 ? xformat("%s: %s", path, note) : xstrdup(note);
    aggregate_row_of(&summary->notes, line);
    free(note);
    free(line);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* How the program was called, "nginx" of "nginx: worker process", else its file: that may be a
 * name nobody used (redis-server is a link to redis-check-rdb). */
static void add_program(struct summary *summary, const struct profile_data *profile)
{
    const char *command = profile_comment(profile, "command");
    char *word = command ? xformat("%.*s", (int)strcspn(command, " :"), command) : NULL;
    if (word && word[0])
        aggregate_row_of(&summary->programs, base_name(word));
    else if (profile->n_mappings > 0 && profile->mappings[0].file[0])
        aggregate_row_of(&summary->programs, base_name(profile->mappings[0].file));
    free(word);
}

/* Samples taken if the profile says how many, else its records. */
static uint64_t count_samples(const struct profile_data *profile)
{
    const char *samples = profile_comment(profile, "samples");
    char *end;
    uint64_t count = samples ? strtoull(samples, &end, 10) : 0;
    return samples && end != samples && *end == '\0' ? count : profile->n_samples;
}

static void add_period(struct summary *summary, const struct profile_data *profile)
{
    if (strcmp(profile->period_type.unit, "bytes") != 0 || profile->period <= 0)
        return;
    if (summary->min_period_bytes == 0 || profile->period < summary->min_period_bytes)
        summary->min_period_bytes = profile->period;
    if (profile->period > summary->max_period_bytes)
        summary->max_period_bytes = profile->period;
}

static void complain_no_type(const struct summary *summary, const char *path,
                             const struct profile_data *profile)
{
    char *types = xstrdup(profile->value_types[0].type);
    for (size_t i = 1; i < profile->n_value_types; i++) {
        char *longer = xformat("%s, %s", types, profile->value_types[i].type);
        free(types);
        types = longer;
    }
    complain("%s: %s has no sample type '%s'; --type may be one of %s", summary->command, path,
             summary->type, types);
    free(types);
}

/* The first file sets type and unit, the others must have the same. */
static bool choose_type(struct summary *summary, const char *path,
                        const struct profile_data *profile, size_t *ret_value_index)
{
    int index = profile_value_index(profile, summary->type);
    if (index < 0) {
        complain_no_type(summary, path, profile);
        return false;
    }
    const struct profile_value_type *type = &profile->value_types[index];
    if (summary->unit && strcmp(summary->unit, type->unit) != 0) {
        complain("%s: %s counts %s in %s, the files before it in %s; give them one by one",
                 summary->command, path, type->type, type->unit, summary->unit);
        return false;
    }
    if (!summary->type)
        summary->type = xstrdup(type->type);
    if (!summary->unit)
        summary->unit = xstrdup(type->unit);
    *ret_value_index = (size_t)index;
    return true;
}

struct profile_data *summary_open_next(struct summary *summary, size_t *ret_value_index)
{
    const char *path = summary->paths[summary->n_read];
    struct profile_data *profile;
    char error[PROFILE_ERROR_BYTES];
    if (profile_read(path, error, &profile) < 0) {
        complain("%s: %s", summary->command, error);
        return NULL;
    }
    if (!choose_type(summary, path, profile, ret_value_index)) {
        profile_free(profile);
        return NULL;
    }
    summary->n_read++;
    summary->n_samples += count_samples(profile);
    add_program(summary, profile);
    add_period(summary, profile);
    for (size_t i = 0; i < profile->n_comments; i++)
        add_note(summary, path, profile->comments[i]);
    return profile;
}

void summary_free(struct summary *summary)
{
    free(summary->type);
    free(summary->unit);
    aggregate_free(&summary->programs);
    aggregate_free(&summary->notes);
}
