/* SPDX-License-Identifier: MIT
 * A table of flat and cum by name: for people, for spreadsheets, for programs.
 *
 * text: sizes for people, one line a row, cut to the width of a terminal only on a terminal.
 * csv: a header line and the rows, every quantity in full. json: one object, header included.
 * Threads: one. Failure: errors of stdout stay in stdout, main looks at its end.
 */
#ifndef LABELPROF_CLI_RENDER_H
#define LABELPROF_CLI_RENDER_H

#include <stddef.h>
#include "cli/aggregate.h"
#include "cli/summary.h"

struct table {
    const struct summary *summary;
    const struct aggregate *aggregate; /* sorted */
    const char *by;                    /* a label key; NULL: functions */
    size_t n_shown;                    /* rows, at most as many as there are */
};

void render_text(const struct table *table);
void render_csv(const struct table *table);
void render_json(const struct table *table);

/* The lines above a table: files, program, type, total, samples, interval, notes. */
void render_header(const struct summary *summary, int64_t total);

#endif
