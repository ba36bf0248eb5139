/* SPDX-License-Identifier: MIT
 * What standard output is: a terminal of some width, with or without colours, or not one.
 *
 * Threads: one. Failure: in doubt it is no terminal.
 */
#ifndef LABELPROF_CLI_TERMINAL_H
#define LABELPROF_CLI_TERMINAL_H

struct terminal {
    int n_columns;                     /* TEXT_WHOLE where nothing must be cut */
    const char *bold, *yellow, *plain; /* escape sequences, "" without colours */
};

struct terminal terminal_of_stdout(void);

#endif
