/* SPDX-License-Identifier: MIT
 * labelprof tags: every label key, and what the samples of each of its values hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/aggregate.h"
#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/operands.h"
#include "cli/render.h"
#include "cli/summary.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/units.h"

enum { TAGS_TYPE };
const struct arg_option tags_options[] = {
    [TAGS_TYPE] = {"type", 0, "TYPE",
                   "alloc_objects, alloc_space, inuse_objects or inuse_space "
                   "(default: the file's own, inuse_space for heap)"},
    {NULL, 0, NULL, NULL},
};

static void print_value(const struct aggregate_row *row, int64_t total, const char *unit)
{
    char size[UNITS_MAX], percent[UNITS_MAX];
    units_format(size, row->flat, unit);
    units_format_percent(percent, row->flat, total);
    printf("  %12s %8s  ", size, percent);
    text_print(stdout, row->name, TEXT_WHOLE);
    fputc('\n', stdout);
}

static void print_key(const char *key, struct aggregate *values, int64_t total, const char *unit)
{
    struct terminal terminal = terminal_of_stdout();
    char size[UNITS_MAX], percent[UNITS_MAX];
    units_format(size, values->total, unit);
    units_format_percent(percent, values->total, total);
    printf("\n%s", terminal.bold);
    text_print(stdout, key, TEXT_WHOLE);
    printf(":%s Total %s, %s of all\n", terminal.plain, size, percent);
    aggregate_sort(values, false);
    for (size_t i = 0; i < values->n_rows; i++)
        print_value(&values->rows[i], values->total, unit);
}

static int compare_keys(const void *left, const void *right)
{
    const struct aggregate_row *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

/* Keys by name, as pprof lists them. */
static void print_tags(const struct summary *summary, struct aggregate_tags *tags)
{
    size_t n_keys = tags->keys.n_rows;
    struct aggregate_row **keys = xcalloc(n_keys, sizeof *keys);
    for (size_t i = 0; i < n_keys; i++)
        keys[i] = &tags->keys.rows[i];
    qsort(keys, n_keys, sizeof *keys, compare_keys);
    render_header(summary, tags->keys.total);
    if (n_keys == 0)
        puts("No labels.");
    for (size_t i = 0; i < n_keys; i++)
        print_key(keys[i]->name, &tags->values[keys[i] - tags->keys.rows], tags->keys.total,
                  summary->unit);
    free(keys);
}

static void free_tags(struct aggregate_tags *tags)
{
    for (size_t i = 0; i < tags->keys.n_rows; i++)
        aggregate_free(&tags->values[i]);
    free(tags->values);
    aggregate_free(&tags->keys);
}

static int run_tags(const struct operands *files, const char *type)
{
    struct aggregate_tags tags = {0};
    struct summary summary = {.command = "tags", .paths = files->items, .n_paths = files->n_items};
    struct profile_data *profile;
    size_t value_index;
    int status = EXIT_DONE;
    summary.type = type ? xstrdup(type) : NULL;
    while (status == EXIT_DONE && summary.n_read < summary.n_paths) {
        profile = summary_open_next(&summary, &value_index);
        if (profile)
            aggregate_all_labels(&tags, profile, value_index);
        else
            status = EXIT_FAULT;
        profile_free(profile);
    }
    if (status == EXIT_DONE)
        print_tags(&summary, &tags);
    free_tags(&tags);
    summary_free(&summary);
    return status;
}

int tags_command(const struct command *command, int argc, char **argv)
{
    struct args args = args_begin(command->name, command->options, argc, argv);
    struct operands files = {0};
    const char *type = NULL;
    int option, status = -1;
    while (status < 0 && (option = args_next(&args)) != ARGS_END) {
        if (option == ARGS_HELP) {
            help_about(command);
            status = EXIT_DONE;
        } else if (option == ARGS_BAD) {
            status = EXIT_USAGE;
        } else if (option == TAGS_TYPE) {
            type = args.value;
        } else {
            operands_add(&files, args.value);
        }
    }
    if (status < 0)
        status = operands_check(&files, command) ? run_tags(&files, type) : EXIT_USAGE;
    operands_free(&files);
    return status;
}
