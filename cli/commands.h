/* SPDX-License-Identifier: MIT
 * The subcommands of `labelprof`: one row each drives dispatch, --help and `labelprof help`.
 *
 * Place: the command's own floor; every file of cli/ may include it.
 * Threads: the command has one. Allocation: malloc and stdio, as any program.
 * Failure: a message on stderr that starts "labelprof:" and says what to do next, and a status.
 */
#ifndef LABELPROF_CLI_COMMANDS_H
#define LABELPROF_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include "cli/args.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAULT = 1, /* the input or the program was at fault */
    EXIT_USAGE = 2,
};

struct command {
    const char *name;
    int (*run)(const struct command *command, int argc, char **argv);
    const char *usage;   /* what follows the name on the command line */
    const char *summary; /* one line */
    const char *text;    /* one paragraph */
    const struct arg_option *options;
};

extern const struct command commands[]; /* ends with a row without a name */

/* NULL: no such command in this version. */
const struct command *command_find(const char *name);

int run_command(const struct command *command, int argc, char **argv);
int top_command(const struct command *command, int argc, char **argv);
int tags_command(const struct command *command, int argc, char **argv);
int rules_command(const struct command *command, int argc, char **argv);
int help_command(const struct command *command, int argc, char **argv);

extern const struct arg_option run_options[], top_options[], tags_options[], rules_options[],
    help_options[];

void help_overview(void);
void help_about(const struct command *command);

/* "labelprof: " + message + newline on stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
