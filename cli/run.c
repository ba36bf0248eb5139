/* SPDX-License-Identifier: MIT
 * labelprof run: a program with the library preloaded.
 *
 * The program takes this process's place (exec), so signals, exit status, job control and parent
 * are exactly its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/options.h"
#include "cli/commands.h"
#include "cli/library.h"
#include "cli/memory.h"
#include "cli/program.h"

enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

enum { RUN_OUT, RUN_SAMPLE, RUN_LABEL };
const struct arg_option run_options[] = {
    [RUN_OUT] = {"out", 'o', "TEMPLATE",
                 "where profiles go (LABELPROF_OUT): %p pid, %e program, "
                 "%t type, %n number, %h host; default "
                 "labelprof.%e.%p.%t.pb.gz"},
    [RUN_SAMPLE] = {"sample", 0, "BYTES",
                    "mean bytes between samples (LABELPROF_SAMPLE_BYTES), "
                    "default 512k; 1 records every allocation"},
    [RUN_LABEL] = {"label", 0, "KEY=VALUE",
                   "a label of the whole process, besides those of "
                   "LABELPROF_LABELS; may be given again"},
    {NULL, 0, NULL, NULL},
};

/* Checks the value as the library will, sets the variable; false and a message if it is bad. */
static bool set_variable(const char *name, const char *value, const char *spelled)
{
    static struct options scratch; /* too large for a stack frame's taste */
    for (size_t i = 0; i < n_option_rows; i++) {
        if (strcmp(option_rows[i].name, name) != 0)
            continue;
        if (!option_read(&option_rows[i], value, &scratch)) {
            complain("run: %s '%s' is not %s", spelled, value, option_rows[i].accepts);
            return false;
        }
    }
    if (setenv(name, value, 1) != 0) {
        complain("run: can't set %s: %s", name, strerror(errno));
        return false;
    }
    return true;
}

/* Doubles as the length: NULL counts. */
static size_t percent_encode(const char *text, size_t n_bytes, char *to)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n_written = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool is_special = byte == ',' || byte == '=' || byte == '%';
        if (to && is_special)
            memcpy(to + n_written, (char[]){'%', digits[byte >> 4], digits[byte & 15]}, 3);
        else if (to)
            to[n_written] = text[i];
        n_written += is_special ? 3 : 1;
    }
    return n_written;
}

static char *encoded(const char *text, size_t n_bytes)
{
    char *result = xcalloc(percent_encode(text, n_bytes, NULL) + 1, 1);
    percent_encode(text, n_bytes, result);
    return result;
}

/* Appends to LABELPROF_LABELS: a later label of the same key wins. An empty value is no label. */
static bool add_label(const char *label)
{
    const char *equals = strchr(label, '=');
    const char *existing = getenv("LABELPROF_LABELS");
    if (!equals || equals == label) {
        complain("run: --label '%s' is not KEY=VALUE", label);
        return false;
    }
    if (equals[1] == '\0')
        return true;
    char *key = encoded(label, (size_t)(equals - label));
    char *value = encoded(equals + 1, strlen(equals + 1));
    bool is_first = !existing || existing[0] == '\0';
    char *all = xformat("%s%s%s=%s", is_first ? "" : existing, is_first ? "" : ",", key, value);
    bool is_good = set_variable("LABELPROF_LABELS", all, "--label: LABELPROF_LABELS");
    free(key);
    free(value);
    free(all);
    return is_good;
}

static bool apply_option(const struct args *args, int option)
{
    switch (option) {
    case RUN_OUT:
        return set_variable("LABELPROF_OUT", args->value, "--out");
    case RUN_SAMPLE:
        return set_variable("LABELPROF_SAMPLE_BYTES", args->value, "--sample");
    default:
        return add_label(args->value);
    }
}

static bool set_preload(void)
{
    char *library = library_find();
    if (!library)
        return false;
    char *preload = library_preload(library, getenv("LD_PRELOAD"));
    bool is_set = setenv("LD_PRELOAD", preload, 1) == 0;
    if (!is_set)
        complain("run: can't set LD_PRELOAD: %s", strerror(errno));
    free(preload);
    free(library);
    return is_set;
}

/* A program that can't be profiled still runs. */
static bool prepare(const char *program)
{
    struct preload_check check = program_check(program);
    switch (check.verdict) {
    case PRELOAD_IGNORED:
        complain("run: %s %s: it runs without a profile (programs it starts may have one)", program,
                 check.reason);
        break;
    case PRELOAD_HARMS:
        complain("run: %s %s: it runs without a profile", program, check.reason);
        return true;
    case PRELOAD_WORKS:
        break;
    }
    return set_preload();
}

static int execute(char **argv)
{
    execvp(argv[0], argv);
    int error = errno;
    if (error == ENOENT && !strchr(argv[0], '/'))
        complain("run: %s is not found in PATH", argv[0]);
    else
        complain("run: can't execute %s: %s", argv[0], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int run_command(const struct command *command, int argc, char **argv)
{
    struct args args = args_begin(command->name, command->options, argc, argv);
    int option;
    while ((option = args_next(&args)) != ARGS_OPERAND) {
        if (option == ARGS_HELP) {
            help_about(command);
            return EXIT_DONE;
        }
        if (option == ARGS_END)
            complain("run: give a program (usage: labelprof run %s)", command->usage);
        if (option < 0 || !apply_option(&args, option))
            return EXIT_USAGE;
    }
    char **program = argv + args.at - 1;
    return prepare(program[0]) ? execute(program) : EXIT_FAULT;
}
