/* SPDX-License-Identifier: MIT
 * A table as text, csv and json, see render.h.
 */
#include "cli/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/units.h"

enum { N_COLUMNS = 4 }; /* flat, flat%, cum, cum%; the name comes after them */

struct cells {
    char text[N_COLUMNS][UNITS_MAX];
};

static const struct cells titles = {{"flat", "flat%", "cum", "cum%"}};

static struct cells row_cells(const struct table *table, size_t i)
{
    const struct aggregate_row *row = &table->aggregate->rows[i];
    struct cells cells;
    units_format(cells.text[0], row->flat, table->summary->unit);
    units_format_percent(cells.text[1], row->flat, table->aggregate->total);
    units_format(cells.text[2], row->cum, table->summary->unit);
    units_format_percent(cells.text[3], row->cum, table->aggregate->total);
    return cells;
}

static void widen(int widths[N_COLUMNS], const struct cells *cells)
{
    for (int i = 0; i < N_COLUMNS; i++)
        if ((int)strlen(cells->text[i]) > widths[i])
            widths[i] = (int)strlen(cells->text[i]);
}

/* The columns the cells took. */
static int print_cells(const struct cells *cells, const int widths[N_COLUMNS])
{
    int n_columns = 0;
    for (int i = 0; i < N_COLUMNS; i++)
        n_columns += printf("%*s  ", widths[i], cells->text[i]);
    return n_columns;
}

static void print_rows(const struct table *table, const struct terminal *terminal,
                       const int widths[N_COLUMNS])
{
    for (size_t i = 0; i < table->n_shown; i++) {
        struct cells cells = row_cells(table, i);
        int n_columns = print_cells(&cells, widths);
        int left = terminal->n_columns - n_columns;
        text_print(stdout, table->aggregate->rows[i].name, left > 8 ? left : 8);
        fputc('\n', stdout);
    }
}

static void print_selection(const struct table *table)
{
    char selected[UNITS_MAX], percent[UNITS_MAX];
    if (table->aggregate->selected == table->aggregate->total)
        return;
    units_format(selected, table->aggregate->selected, table->summary->unit);
    units_format_percent(percent, table->aggregate->selected, table->aggregate->total);
    printf("Selected: %s, %s of the total\n", selected, percent);
}

void render_text(const struct table *table)
{
    struct terminal terminal = terminal_of_stdout();
    int widths[N_COLUMNS] = {0};
    render_header(table->summary, table->aggregate->total);
    print_selection(table);
    widen(widths, &titles);
    for (size_t i = 0; i < table->n_shown; i++) {
        struct cells cells = row_cells(table, i);
        widen(widths, &cells);
    }
    fputs(terminal.bold, stdout);
    print_cells(&titles, widths);
    text_print(stdout, table->by ? table->by : "function", TEXT_WHOLE);
    printf("%s\n", terminal.plain);
    print_rows(table, &terminal, widths);
    if (table->n_shown < table->aggregate->n_rows)
        printf("%zu more (-n 0 shows all)\n", table->aggregate->n_rows - table->n_shown);
}

void render_csv(const struct table *table)
{
    int64_t total = table->aggregate->total;
    fputs("flat,flat_percent,cum,cum_percent,name\n", stdout);
    for (size_t i = 0; i < table->n_shown; i++) {
        const struct aggregate_row *row = &table->aggregate->rows[i];
        printf("%" PRId64 ",%.4f,%" PRId64 ",%.4f,", row->flat, units_percent(row->flat, total),
               row->cum, units_percent(row->cum, total));
        text_print_csv(stdout, row->name);
        fputc('\n', stdout);
    }
}

static void print_member(const char *name, const char *value)
{
    printf("  \"%s\": ", name);
    text_print_json(stdout, value);
    fputs(",\n", stdout);
}

static void print_names(const char *name, const struct aggregate *names)
{
    printf("  \"%s\": [", name);
    for (size_t i = 0; i < names->n_rows; i++) {
        fputs(i ? ", " : "", stdout);
        text_print_json(stdout, names->rows[i].name);
    }
    fputs("],\n", stdout);
}

static void print_files(const struct summary *summary)
{
    fputs("  \"files\": [", stdout);
    for (size_t i = 0; i < summary->n_paths; i++) {
        fputs(i ? ", " : "", stdout);
        text_print_json(stdout, summary->paths[i]);
    }
    fputs("],\n", stdout);
}

static void print_json_row(const struct table *table, size_t i)
{
    const struct aggregate_row *row = &table->aggregate->rows[i];
    int64_t total = table->aggregate->total;
    fputs(i ? ",\n    {\"name\": " : "\n    {\"name\": ", stdout);
    text_print_json(stdout, row->name);
    printf(", \"flat\": %" PRId64 ", \"flat_percent\": %.4f", row->flat,
           units_percent(row->flat, total));
    printf(", \"cum\": %" PRId64 ", \"cum_percent\": %.4f}", row->cum,
           units_percent(row->cum, total));
}

void render_json(const struct table *table)
{
    const struct summary *summary = table->summary;
    fputs("{\n", stdout);
    print_files(summary);
    print_names("programs", &summary->programs);
    print_member("type", summary->type);
    print_member("unit", summary->unit);
    print_member("by", table->by ? table->by : "function");
    printf("  \"total\": %" PRId64 ",\n  \"selected\": %" PRId64 ",\n", table->aggregate->total,
           table->aggregate->selected);
    printf("  \"samples\": %" PRIu64 ",\n  \"sample_bytes\": %" PRId64 ",\n", summary->n_samples,
           summary->max_period_bytes);
    print_names("notes", &summary->notes);
    printf("  \"n_rows\": %zu,\n  \"rows\": [", table->aggregate->n_rows);
    for (size_t i = 0; i < table->n_shown; i++)
        print_json_row(table, i);
    puts("\n  ]\n}");
}
