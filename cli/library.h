/* SPDX-License-Identifier: MIT
 * Where liblabelprof.so is, and the LD_PRELOAD that loads it.
 *
 * Threads: one. Failure: a message on stderr that says where it looked, and NULL.
 */
#ifndef LABELPROF_CLI_LIBRARY_H
#define LABELPROF_CLI_LIBRARY_H

/* The library of the same build or installation as this command, by absolute path. */
char *library_find(void);

/* The library first, then what `existing` (NULL: nothing) asks for. */
char *library_preload(const char *library, const char *existing);

#endif
