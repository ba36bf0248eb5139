/* SPDX-License-Identifier: MIT
 * Options of a subcommand: one table of rows drives parsing and --help.
 *
 * Accepts --name VALUE, --name=VALUE, -n VALUE, -nVALUE, and "--" before operands that start with
 * a dash; names are matched whole. Operands may stand between options.
 * Failure: a message on stderr, and ARGS_BAD.
 */
#ifndef LABELPROF_CLI_ARGS_H
#define LABELPROF_CLI_ARGS_H

#include <stdbool.h>

struct arg_option {
    const char *name;  /* without dashes; NULL ends a table */
    char letter;       /* 0: none */
    const char *value; /* its word in the help; NULL: takes none */
    const char *help;  /* NULL: known, but not shown */
};

enum { ARGS_END = -1, ARGS_OPERAND = -2, ARGS_BAD = -3, ARGS_HELP = -4 };

struct args {
    const char *command; /* for messages */
    const struct arg_option *options;
    int argc;
    char **argv; /* argv[0] is the command's name */
    int at;      /* the next argument to look at */
    bool only_operands;
    const char *value; /* of the option or operand just returned */
};

struct args args_begin(const char *command, const struct arg_option *options, int argc,
                       char **argv);

/* The index of an option's row, or one of ARGS_*. Every table has --help without a row for it. */
int args_next(struct args *args);

/* A whole decimal number from 0 to max; false and a message if it is anything else. */
bool args_number(const struct args *args, const char *option, long max, long *ret_number);

#endif
