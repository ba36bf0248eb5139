/* SPDX-License-Identifier: MIT
 * labelprof help: from the table of subcommands, their tables of options, and the one table of
 * LABELPROF_* variables.
 */
#include <stdio.h>
#include <string.h>
#include "base/options.h"
#include "cli/commands.h"

enum { TEXT_COLUMNS = 78 };

const struct arg_option help_options[] = {{NULL, 0, NULL, NULL}};

void help_overview(void)
{
    puts("labelprof " LABELPROF_VERSION ": labelled heap profiles of any Linux program.\n\n"
         "usage: labelprof SUBCOMMAND [OPTION]...\n");
    for (const struct command *command = commands; command->name; command++)
        printf("  %-6s %s\n", command->name, command->summary);
    puts("\n'labelprof SUBCOMMAND --help' tells more, 'labelprof help env' lists the LABELPROF_*\n"
         "variables. A first profile:\n\n"
         "  labelprof run --out app.pb.gz ./app\n"
         "  labelprof top app.pb.gz");
}

/* Words of the text between margin and TEXT_COLUMNS; the first line has `column` of them taken. */
static void print_wrapped(const char *text, int margin, int column)
{
    while (*text) {
        int n_bytes = (int)strcspn(text, " ");
        if (column > margin && column + 1 + n_bytes > TEXT_COLUMNS) {
            printf("\n%*s", margin, "");
            column = margin;
        }
        column += printf("%s%.*s", column == margin ? "" : " ", n_bytes, text);
        text += n_bytes + (text[n_bytes] == ' ');
    }
    putchar('\n');
}

static void print_option(const struct arg_option *option)
{
    enum { MARGIN = 18 };
    int column = option->letter ? printf("  -%c, ", option->letter) : printf("  ");
    column += printf("--%s", option->name);
    if (option->value)
        column += printf(" %s", option->value);
    if (column >= MARGIN)
        putchar('\n');
    printf("%*s", column >= MARGIN ? MARGIN : MARGIN - column, "");
    print_wrapped(option->help, MARGIN, MARGIN);
}

void help_about(const struct command *command)
{
    int margin = printf("usage: labelprof %s", command->name);
    print_wrapped(command->usage, margin + 1, margin);
    putchar('\n');
    print_wrapped(command->text, 0, 0);
    putchar('\n');
    for (const struct arg_option *option = command->options; option->name; option++)
        if (option->help)
            print_option(option);
    puts("  --help          this text");
}

static void print_row(const struct option_row *row)
{
    printf("%s", row->name);
    if (row->default_text[0])
        printf(" (default: %s)", row->default_text);
    printf("\n    ");
    print_wrapped(row->meaning, 4, 4);
    printf("    Accepts");
    print_wrapped(row->accepts, 4, 11);
}

static void help_env(void)
{
    print_wrapped("The library reads these variables when the program starts; the programs it "
                  "starts inherit them. After a bad value the profiler stays off, says so in one "
                  "line, and the program runs unharmed.",
                  0, 0);
    putchar('\n');
    for (size_t i = 0; i < n_option_rows; i++)
        print_row(&option_rows[i]);
}

static int help_topic(const char *topic)
{
    const struct command *command = command_find(topic);
    if (command)
        help_about(command);
    else if (strcmp(topic, "env") == 0)
        help_env();
    else {
        complain("help: no topic '%s'; a subcommand is one, and 'env'", topic);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int help_command(const struct command *command, int argc, char **argv)
{
    struct args args = args_begin(command->name, command->options, argc, argv);
    int option = args_next(&args);
    if (option == ARGS_BAD)
        return EXIT_USAGE;
    if (option == ARGS_HELP) {
        help_about(command);
        return EXIT_DONE;
    }
    if (option == ARGS_END) {
        help_overview();
        return EXIT_DONE;
    }
    if (args.at < argc) {
        complain("help: one topic at a time (usage: labelprof help %s)", command->usage);
        return EXIT_USAGE;
    }
    return help_topic(args.value);
}
