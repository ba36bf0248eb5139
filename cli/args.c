/* SPDX-License-Identifier: MIT
 * Options of a subcommand, see args.h.
 */
#include "cli/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"

struct args args_begin(const char *command, const struct arg_option *options, int argc, char **argv)
{
    struct args args = {.command = command, .options = options, .argc = argc, .argv = argv};
    args.at = 1;
    return args;
}

static int complain_about(const struct args *args, const char *what, const char *option)
{
    complain("%s: %s '%s' ('labelprof %s --help' lists the options)", args->command, what, option,
             args->command);
    return ARGS_BAD;
}

static int find_name(const struct args *args, const char *name, size_t n_bytes)
{
    for (int i = 0; args->options[i].name; i++)
        if (strlen(args->options[i].name) == n_bytes &&
            memcmp(args->options[i].name, name, n_bytes) == 0)
            return i;
    return ARGS_BAD;
}

static int find_letter(const struct args *args, char letter)
{
    for (int i = 0; args->options[i].name; i++)
        if (args->options[i].letter == letter)
            return i;
    return ARGS_BAD;
}

/* `attached` is the value in the same argument, NULL if there is none. */
static int take_value(struct args *args, int row, const char *attached, const char *spelled)
{
    const struct arg_option *option = &args->options[row];
    if (!option->value)
        return attached ? complain_about(args, "no value goes with", spelled) : row;
    if (!attached && args->at >= args->argc)
        return complain_about(args, "a value is missing after", spelled);
    args->value = attached ? attached : args->argv[args->at++];
    return row;
}

static int next_long(struct args *args, const char *argument)
{
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    size_t n_bytes = equals ? (size_t)(equals - name) : strlen(name);
    if (strcmp(name, "help") == 0)
        return ARGS_HELP;
    int row = find_name(args, name, n_bytes);
    if (row < 0)
        return complain_about(args, "unknown option", argument);
    return take_value(args, row, equals ? equals + 1 : NULL, argument);
}

static int next_short(struct args *args, const char *argument)
{
    if (strcmp(argument, "-h") == 0)
        return ARGS_HELP;
    int row = find_letter(args, argument[1]);
    if (row < 0)
        return complain_about(args, "unknown option", argument);
    return take_value(args, row, argument[2] ? argument + 2 : NULL, argument);
}

int args_next(struct args *args)
{
    if (args->at >= args->argc)
        return ARGS_END;
    const char *argument = args->argv[args->at++];
    args->value = argument;
    if (args->only_operands || argument[0] != '-' || argument[1] == '\0')
        return ARGS_OPERAND;
    if (strcmp(argument, "--") == 0) {
        args->only_operands = true;
        return args_next(args);
    }
    args->value = NULL;
    return argument[1] == '-' ? next_long(args, argument) : next_short(args, argument);
}

bool args_number(const struct args *args, const char *option, long max, long *ret_number)
{
    char *end;
    errno = 0;
    long number = strtol(args->value, &end, 10);
    bool is_digit = args->value[0] >= '0' && args->value[0] <= '9';
    if (!is_digit || *end != '\0' || errno != 0 || number > max) {
        complain("%s: %s '%s' is not a whole number from 0 to %ld", args->command, option,
                 args->value, max);
        return false;
    }
    *ret_number = number;
    return true;
}
