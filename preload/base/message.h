/* SPDX-License-Identifier: MIT
 * One line on stderr, starting "labelprof:", in one write. Never blocks longer than stderr does.
 * Threads and signals: safe everywhere. Failure: the line is lost; the program goes on.
 */
#ifndef LABELPROF_BASE_MESSAGE_H
#define LABELPROF_BASE_MESSAGE_H

/* Notes what stderr is now. Later, when fd 2 has become something else, nothing is written to it. */
void message_open(void);

/* "labelprof: <what>" and, unless NULL, ": <detail>". */
void message(const char *what, const char *detail);
/* The same, only at LABELPROF_VERBOSE=1. */
void message_verbose(const char *what, const char *detail);

#endif
