/* SPDX-License-Identifier: MIT
 * labelprof rules check: what the rules of a file would label in profiles, and what they miss.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/memory.h"
#include "cli/operands.h"
#include "cli/render.h"
#include "cli/rule_counts.h"
#include "cli/summary.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/units.h"

enum { UNLABELLED_SHOWN = 5 };

enum { RULES_TYPE };
const struct arg_option rules_options[] = {
    [RULES_TYPE] = {"type", 0, "TYPE",
                    "alloc_objects, alloc_space, inuse_objects or inuse_space "
                    "(default: the file's own, inuse_space for heap)"},
    {NULL, 0, NULL, NULL},
};

/* False, and a message with the place, if the file is not one of rules. */
static bool read_rules(const char *path, struct label_rules *rules)
{
    struct rule_error error;
    FILE *file = fopen(path, "re");
    size_t n_bytes = file ? fread(rules->text, 1, sizeof rules->text, file) : 0;
    bool is_read = file && !ferror(file);
    if (!is_read)
        complain("rules: can't read %s: %s", path, strerror(errno));
    if (file)
        fclose(file);
    if (!is_read || rule_file_parse(rules, n_bytes, &error))
        return is_read;
    complain("%s:%" PRIu32 ":%" PRIu32 ": %s", path, error.line, error.column, error.what);
    return false;
}

static void print_patterns(const struct label_rules *rules, const char *word,
                           const struct rule_patterns *patterns)
{
    if (patterns->n)
        printf(" %s", word);
    for (unsigned i = 0; i < patterns->n; i++) {
        fputc(' ', stdout);
        text_print(stdout, rules->text + rules->patterns[patterns->first + i], TEXT_WHOLE);
    }
}

static void print_text(const char *text, size_t n_bytes)
{
    char *copy = xformat("%.*s", (int)n_bytes, text);
    text_print(stdout, copy, TEXT_WHOLE);
    free(copy);
}

static void print_rule(const struct label_rules *rules, const struct label_rule *rule)
{
    const struct rule_key *key = &rules->keys[rule->key];
    printf("%5" PRIu32 "  ", rule->line);
    print_text(rules->text + key->at, key->n_bytes);
    fputc('=', stdout);
    print_text(rules->text + rule->value, rule->value_bytes);
    print_patterns(rules, "function", &rule->functions);
    print_patterns(rules, "module", &rule->modules);
    fputc('\n', stdout);
}

static void print_given(const struct rule_counts *counts, const char *unit)
{
    printf("\n%12s %8s %12s %8s %5s  %s\n", "flat", "flat%", "objects", "stacks", "line", "rule");
    for (unsigned i = 0; i < counts->rules->n_rules; i++) {
        const struct rule_count *count = &counts->of_rule[i];
        char size[UNITS_MAX], percent[UNITS_MAX];
        if (count->n_stacks == 0)
            continue;
        units_format(size, count->value, unit);
        units_format_percent(percent, count->value, counts->total);
        printf("%12s %8s %12" PRId64 " %8" PRIu64 " ", size, percent, count->objects,
               count->n_stacks);
        print_rule(counts->rules, &counts->rules->rules[i]);
    }
}

static void print_idle(const struct rule_counts *counts, bool takes_frames, const char *title)
{
    bool is_first = true;
    for (unsigned i = 0; i < counts->rules->n_rules; i++) {
        if (counts->of_rule[i].n_stacks || counts->of_rule[i].takes_frames != takes_frames)
            continue;
        if (is_first)
            printf("\n%s\n", title);
        is_first = false;
        print_rule(counts->rules, &counts->rules->rules[i]);
    }
}

static void print_unlabelled(struct rule_counts *counts, const char *unit)
{
    aggregate_sort(&counts->unlabelled, false);
    if (counts->unlabelled.n_rows)
        printf("\nNo rule labels (function nearest the leaf that has a name):\n");
    for (size_t i = 0; i < counts->unlabelled.n_rows && i < UNLABELLED_SHOWN; i++) {
        char size[UNITS_MAX], percent[UNITS_MAX];
        units_format(size, counts->unlabelled.rows[i].flat, unit);
        units_format_percent(percent, counts->unlabelled.rows[i].flat, counts->total);
        printf("%12s %8s  ", size, percent);
        text_print(stdout, counts->unlabelled.rows[i].name, TEXT_WHOLE);
        fputc('\n', stdout);
    }
}

static void print_keys(const struct rule_counts *counts, const char *unit)
{
    fputc('\n', stdout);
    for (unsigned i = 0; i < counts->rules->n_keys; i++) {
        const struct rule_key *key = &counts->rules->keys[i];
        char size[UNITS_MAX], percent[UNITS_MAX];
        units_format(size, counts->of_key[i], unit);
        units_format_percent(percent, counts->of_key[i], counts->total);
        print_text(counts->rules->text + key->at, key->n_bytes);
        printf(": %s labelled, %s of the total\n", size, percent);
    }
}

static void print_counts(const struct summary *summary, struct rule_counts *counts)
{
    render_header(summary, counts->total);
    print_given(counts, summary->unit);
    print_idle(counts, true, "Where these match, another rule wins:");
    print_idle(counts, false, "These match nothing:");
    print_unlabelled(counts, summary->unit);
    print_keys(counts, summary->unit);
}

/* inuse_space → inuse_objects; -1 if the profile has no such pair. */
static int objects_index(const struct profile_data *profile, const char *type)
{
    const char *underscore = strchr(type, '_');
    char *objects = xformat("%.*s_objects", (int)(underscore ? underscore - type : 0), type);
    int index = profile_value_index(profile, objects);
    free(objects);
    return index;
}

static int check_profiles(const struct label_rules *rules, const struct operands *files,
                          const char *type)
{
    struct rule_counts *counts = xcalloc(1, sizeof *counts);
    struct summary summary = {
        .command = "rules", .paths = files->items + 1, .n_paths = files->n_items - 1};
    struct profile_data *profile;
    size_t value_index;
    int status = EXIT_DONE;
    counts->rules = rules;
    summary.type = type ? xstrdup(type) : NULL;
    while (status == EXIT_DONE && summary.n_read < summary.n_paths) {
        profile = summary_open_next(&summary, &value_index);
        if (profile)
            rule_counts_add(counts, profile, value_index, objects_index(profile, summary.type));
        else
            status = EXIT_FAULT;
        profile_free(profile);
    }
    if (status == EXIT_DONE)
        print_counts(&summary, counts);
    rule_counts_free(counts);
    free(counts);
    summary_free(&summary);
    return status;
}

static int run_check(const struct operands *files, const char *type)
{
    struct label_rules *rules = xcalloc(1, sizeof *rules);
    int status = EXIT_FAULT;
    if (read_rules(files->items[0], rules)) {
        printf("Rules: ");
        text_print(stdout, files->items[0], TEXT_WHOLE);
        printf("  %" PRIu32 " rules for %" PRIu32 " keys\n", rules->n_rules, rules->n_keys);
        status = files->n_items > 1 ? check_profiles(rules, files, type) : EXIT_DONE;
    }
    free(rules);
    return status;
}

static bool is_check(const char *word)
{
    if (strcmp(word, "check") == 0)
        return true;
    complain("rules: '%s' is not 'check', all that can be done with rules", word);
    return false;
}

/* A status to end with, or -1. The first operand is the word check. */
static int read_arguments(const struct command *command, int argc, char **argv,
                          struct operands *files, const char **ret_type)
{
    struct args args = args_begin(command->name, command->options, argc, argv);
    bool did_say_check = false;
    int option;
    while ((option = args_next(&args)) != ARGS_END) {
        if (option == ARGS_HELP) {
            help_about(command);
            return EXIT_DONE;
        }
        if (option == ARGS_BAD ||
            (option == ARGS_OPERAND && !did_say_check && !is_check(args.value)))
            return EXIT_USAGE;
        if (option == RULES_TYPE)
            *ret_type = args.value;
        else if (did_say_check)
            operands_add(files, args.value);
        else
            did_say_check = true;
    }
    if (files->n_items)
        return -1;
    complain("rules: give a file of rules (usage: labelprof rules %s)", command->usage);
    return EXIT_USAGE;
}

int rules_command(const struct command *command, int argc, char **argv)
{
    struct operands files = {0};
    const char *type = NULL;
    int status = read_arguments(command, argc, argv, &files, &type);
    if (status < 0)
        status = run_check(&files, type);
    operands_free(&files);
    return status;
}
