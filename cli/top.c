/* SPDX-License-Identifier: MIT
 * labelprof top: who holds or allocates how much, by function or by the values of a label.
 */
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include "cli/aggregate.h"
#include "cli/commands.h"
#include "cli/frame_names.h"
#include "cli/memory.h"
#include "cli/operands.h"
#include "cli/render.h"
#include "cli/summary.h"

enum { TEXT_ROWS = 30 }; /* as many as a screen shows; csv and json give all */

enum { TOP_BY, TOP_TYPE, TOP_FOCUS, TOP_IGNORE, TOP_ROWS, TOP_CUM, TOP_FORMAT, TOP_PID };
const struct arg_option top_options[] = {
    [TOP_BY] = {"by", 0, "KEY", "sum by the values of this label instead of by function"},
    [TOP_TYPE] = {"type", 0, "TYPE",
                  "alloc_objects, alloc_space, inuse_objects or inuse_space "
                  "(default: the file's own, inuse_space for heap)"},
    [TOP_FOCUS] = {"focus", 0, "RE", "only samples with a function on their stack that matches"},
    [TOP_IGNORE] = {"ignore", 0, "RE", "no samples with a function on their stack that matches"},
    [TOP_ROWS] = {"rows", 'n', "N", "show N rows, 0 for all (default: 30; csv and json: all)"},
    [TOP_CUM] = {"cum", 0, NULL, "sort by cum instead of flat"},
    [TOP_FORMAT] = {"format", 0, "FORMAT", "text, csv or json (default: text)"},
    [TOP_PID] = {"pid", 0, "N", NULL},
    {NULL, 0, NULL, NULL},
};

struct format {
    const char *name;
    void (*render)(const struct table *table);
    long default_rows; /* 0: all */
};
static const struct format formats[] = {
    {"text", render_text, TEXT_ROWS},
    {"csv", render_csv, 0},
    {"json", render_json, 0},
    {NULL, NULL, 0},
};

struct top {
    const struct format *format;
    long n_rows; /* 0: all; -1: the format's default */
    const char *by, *type;
    bool by_cum;
    regex_t focus, ignore;
    struct frame_filter filter; /* points at the two above where they are set */
    struct operands files;
};

static bool read_format(struct top *top, const char *name)
{
    for (const struct format *format = formats; format->name; format++)
        if (strcmp(format->name, name) == 0) {
            top->format = format;
            return true;
        }
    complain("top: --format '%s' is not one of text, csv, json", name);
    return false;
}

static bool read_pattern(const char *option, const char *text, regex_t *pattern,
                         const regex_t **ret_pattern)
{
    char reason[256];
    if (*ret_pattern)
        regfree(pattern);
    *ret_pattern = NULL;
    int error = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);
    if (error) {
        regerror(error, pattern, reason, sizeof reason);
        complain("top: --%s '%s' is not a regular expression as grep -E takes it: %s", option, text,
                 reason);
        return false;
    }
    *ret_pattern = pattern;
    return true;
}

static bool read_option(struct top *top, const struct args *args, int option)
{
    switch (option) {
    case TOP_BY:
        top->by = args->value;
        return true;
    case TOP_TYPE:
        top->type = args->value;
        return true;
    case TOP_FOCUS:
        return read_pattern("focus", args->value, &top->focus, &top->filter.focus);
    case TOP_IGNORE:
        return read_pattern("ignore", args->value, &top->ignore, &top->filter.ignore);
    case TOP_ROWS:
        return args_number(args, "-n", INT_MAX, &top->n_rows);
    case TOP_CUM:
        top->by_cum = true;
        return true;
    case TOP_FORMAT:
        return read_format(top, args->value);
    case TOP_PID:
        complain("top: --pid is not in this version; ask the program for a dump "
                 "(LABELPROF_DUMP_SIGNAL) and give its file");
        return false;
    default:
        operands_add(&top->files, args->value);
        return true;
    }
}

/* A status to end with, or -1. */
static int read_options(struct top *top, const struct command *command, int argc, char **argv)
{
    struct args args = args_begin(command->name, command->options, argc, argv);
    int option;
    while ((option = args_next(&args)) != ARGS_END) {
        if (option == ARGS_HELP) {
            help_about(command);
            return EXIT_DONE;
        }
        if (option == ARGS_BAD || !read_option(top, &args, option))
            return EXIT_USAGE;
    }
    return operands_check(&top->files, command) ? -1 : EXIT_USAGE;
}

/* The keys that --by could have named, for the message. */
static void complain_unknown_key(const struct top *top, const struct aggregate *keys)
{
    char *list = xstrdup("");
    for (size_t i = 0; i < keys->n_rows; i++) {
        char *longer = xformat("%s%s%s", list, i ? ", " : "", keys->rows[i].name);
        free(list);
        list = longer;
    }
    if (keys->n_rows == 0)
        complain("top: no sample has a label '%s', or any other: without --by, top sums by "
                 "function",
                 top->by);
    else
        complain("top: no sample has a label '%s'; the keys there are: %s", top->by, list);
    free(list);
}

static void collect_keys(struct aggregate *keys, const struct profile_data *profile)
{
    for (size_t i = 0; i < profile->n_samples; i++)
        for (size_t j = 0; j < profile->samples[i].n_labels; j++)
            aggregate_row_of(keys, profile->samples[i].labels[j].key);
}

/* True if every file was read and, with --by, some sample has the label. */
static bool add_files(const struct top *top, struct summary *summary, struct aggregate *aggregate)
{
    struct aggregate keys = {0};
    bool is_known = !top->by, is_good = true;
    while (is_good && summary->n_read < summary->n_paths) {
        size_t value_index;
        struct profile_data *profile = summary_open_next(summary, &value_index);
        is_good = profile;
        if (!is_good)
            break;
        struct frame_names names = frame_names_begin(profile, top->filter);
        if (!top->by)
            aggregate_functions(aggregate, profile, value_index, &names);
        else
            is_known |= aggregate_label(aggregate, profile, value_index, &names, top->by);
        frame_names_end(&names);
        if (!is_known)
            collect_keys(&keys, profile);
        profile_free(profile);
    }
    if (is_good && !is_known)
        complain_unknown_key(top, &keys);
    aggregate_free(&keys);
    return is_good && is_known;
}

static void show(const struct top *top, const struct summary *summary, struct aggregate *aggregate)
{
    long n_rows = top->n_rows < 0 ? top->format->default_rows : top->n_rows;
    struct table table = {.summary = summary, .aggregate = aggregate, .by = top->by};
    bool is_all = n_rows == 0 || (size_t)n_rows > aggregate->n_rows;
    table.n_shown = is_all ? aggregate->n_rows : (size_t)n_rows;
    aggregate_sort(aggregate, top->by_cum);
    top->format->render(&table);
}

static int run_top(const struct top *top)
{
    struct aggregate aggregate = {0};
    struct summary summary = {.command = "top", .paths = top->files.items};
    summary.n_paths = top->files.n_items;
    summary.type = top->type ? xstrdup(top->type) : NULL;
    bool is_good = add_files(top, &summary, &aggregate);
    if (is_good)
        show(top, &summary, &aggregate);
    aggregate_free(&aggregate);
    summary_free(&summary);
    return is_good ? EXIT_DONE : EXIT_FAULT;
}

int top_command(const struct command *command, int argc, char **argv)
{
    struct top top = {.format = &formats[0], .n_rows = -1};
    int status = read_options(&top, command, argc, argv);
    if (status < 0)
        status = run_top(&top);
    if (top.filter.focus)
        regfree(&top.focus);
    if (top.filter.ignore)
        regfree(&top.ignore);
    operands_free(&top.files);
    return status;
}
