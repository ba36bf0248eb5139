/* SPDX-License-Identifier: MIT
 * Dumps: run the cycle forward, write the profile, whole or not at all.
 *
 * Threads: one publish lock, also held over a cycle without a dump; only who asked for a dump waits
 * for a file. Signals: blocked in the calling thread while it writes; call inside the profiler
 * (thread_enter), also from a handler. Allocation: none on the program's heap.
 * Failure: one line on stderr, -1; nothing half-written.
 */
#ifndef LABELPROF_PUBLISH_DUMP_H
#define LABELPROF_PUBLISH_DUMP_H

#include <stdbool.h>

bool dump_open(void);
/* A new instance begins (start, or the child of fork): its time counts from now. */
void dump_begin_instance(void);

/* Runs one cycle unless somebody is dumping or publishing right now. */
void dump_publish(void);

/* Writes each of LABELPROF_PROFILES to LABELPROF_OUT. */
int dump_all(void);
/* One type ("heap", "allocs") to `path`, or to LABELPROF_OUT if NULL. */
int dump_one(const char *type, const char *path);

#endif
