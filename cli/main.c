/* SPDX-License-Identifier: MIT
 * labelprof, the command: the table of subcommands and the way to them.
 *
 * Failure: exit status 1 if the input, the program or the output was at fault, 2 for wrong usage;
 * each with a line on stderr that starts "labelprof:".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/text.h"

const struct command commands[] = {
    {"run", run_command,
     "[--out TEMPLATE] [--sample BYTES] [--label KEY=VALUE]... [--] PROGRAM [ARGUMENT]...",
     "run a program under the profiler",
     "The program is executed with the library in LD_PRELOAD and ends as it always does; its heap "
     "profile is written when it ends. 'labelprof help env' lists what else can be set. Exit "
     "status: the program's; 127 if it was not found, 126 if it could not be executed.",
     run_options},
    {"top", top_command, "[OPTION]... FILE...", "the largest, by function or by a label",
     "flat is what a function itself allocated, cum what it and all it called did, each also in "
     "percent of the total. Several files are summed. '-' reads standard input.",
     top_options},
    {"tags", tags_command, "[--type TYPE] FILE...", "every label and its values",
     "Percentages of values are of their label's total. Several files are summed. '-' reads "
     "standard input.",
     tags_options},
    {"rules", rules_command, "check [--type TYPE] RULES [FILE]...",
     "what a file of label rules would label in profiles",
     "Shows for each rule what it would label, which rules match nothing, and the share labelled of "
     "each key. LABELPROF_RULES=RULES makes the library give the labels. A rule is one line, "
     "'KEY=VALUE function PATTERN...', 'KEY=VALUE module PATTERN...', or with both words, when both "
     "must match; # begins a comment. In a pattern * is any run of characters and ? any one. A "
     "function goes by its symbol (C++ mangled), a module by the base name of its file. Blanks, "
     "commas and % in a label are written %20, %2C, %25. For each key the frame nearest the leaf "
     "decides, and for one frame the first rule in the file. Exit status: 1 if a file is at fault.",
     rules_options},
    {"help", help_command, "[TOPIC]", "help on a subcommand, or on 'env', the environment",
     "Topics are the subcommands, and env: the LABELPROF_* variables.", help_options},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

/* Names that documents may mention and this version does not have. */
static const char *const absent_commands[] = {"report",    "flame",   "diff",  "merge",
                                              "symbolize", "recover", "log",   "ps",
                                              "dump",      "doctor"};

void complain(const char *format, ...)
{
    char *message = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    fputs("labelprof: ", stderr);
    text_print(stderr, message ? message : format, TEXT_WHOLE);
    fputc('\n', stderr);
    free(message);
}

const struct command *command_find(const char *name)
{
    for (const struct command *command = commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static int complain_unknown(const char *name)
{
    for (size_t i = 0; i < sizeof absent_commands / sizeof *absent_commands; i++)
        if (strcmp(absent_commands[i], name) == 0) {
            complain("'%s' is not in this version (%s); 'labelprof help' lists what is", name,
                     LABELPROF_VERSION);
            return EXIT_USAGE;
        }
    complain("unknown %s '%s'; 'labelprof help' lists the subcommands",
             name[0] == '-' ? "option" : "subcommand", name);
    return EXIT_USAGE;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        complain("a subcommand is missing; 'labelprof help' lists them");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("labelprof " LABELPROF_VERSION);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_overview();
        return EXIT_DONE;
    }
    const struct command *command = command_find(argv[1]);
    return command ? command->run(command, argc - 1, argv + 1) : complain_unknown(argv[1]);
}

/* A reader that went away (EPIPE) is no news to anybody; a full disk is. */
static int finish_output(int status)
{
    bool is_bad = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) == 0 && !is_bad)
        return status;
    if (errno != EPIPE)
        complain("can't write the output: %s", errno ? strerror(errno) : "write error");
    return status == EXIT_DONE ? EXIT_FAULT : status;
}

int main(int argc, char **argv)
{
    return finish_output(dispatch(argc, argv));
}
