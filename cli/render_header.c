/* SPDX-License-Identifier: MIT
 * The lines above a table, see render.h.
 */
#include "cli/render.h"

#include <inttypes.h>
#include <stdio.h>
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/units.h"

enum { FILES_NAMED = 3 }; /* more are only counted */

static void print_names(const struct aggregate *names)
{
    for (size_t i = 0; i < names->n_rows; i++) {
        fputs(i ? ", " : "", stdout);
        text_print(stdout, names->rows[i].name, TEXT_WHOLE);
    }
}

static void print_files(const struct summary *summary)
{
    fputs(summary->n_paths == 1 ? "File: " : "Files: ", stdout);
    for (size_t i = 0; i < summary->n_paths && i < FILES_NAMED; i++) {
        fputs(i ? ", " : "", stdout);
        text_print(stdout, summary->paths[i], TEXT_WHOLE);
    }
    if (summary->n_paths > FILES_NAMED)
        printf(" and %zu more", summary->n_paths - FILES_NAMED);
    if (summary->programs.n_rows > 0) {
        fputs("  Program: ", stdout);
        print_names(&summary->programs);
    }
    fputc('\n', stdout);
}

static void print_period(const struct summary *summary)
{
    char shortest[UNITS_MAX], longest[UNITS_MAX];
    units_format(shortest, summary->min_period_bytes, "bytes");
    units_format(longest, summary->max_period_bytes, "bytes");
    if (summary->max_period_bytes == 1)
        fputs(", every allocation recorded", stdout);
    else if (summary->min_period_bytes != summary->max_period_bytes)
        printf(", one every %s to %s", shortest, longest);
    else if (summary->max_period_bytes > 0)
        printf(", one every %s", shortest);
}

void render_header(const struct summary *summary, int64_t total)
{
    struct terminal terminal = terminal_of_stdout();
    char text[UNITS_MAX];
    print_files(summary);
    units_format(text, total, summary->unit);
    fputs("Type: ", stdout);
    text_print(stdout, summary->type, TEXT_WHOLE);
    printf("  Total: %s  Samples: %" PRIu64, text, summary->n_samples);
    print_period(summary);
    fputc('\n', stdout);
    for (size_t i = 0; i < summary->notes.n_rows; i++) {
        printf("%sNote: ", terminal.yellow);
        text_print(stdout, summary->notes.rows[i].name, TEXT_WHOLE);
        printf("%s\n", terminal.plain);
    }
}
