/* SPDX-License-Identifier: MIT
 * Start, stop, fork: the only file that knows all the stages.
 *
 * A *session* is one process image; an *instance* is one process of it: the child of fork finds the
 * ledger wiped and begins an instance of its own at its first sample.
 * States: NEW -> STARTING -> ON | OFF. In OFF, and before main's libraries are there, the doors
 * only forward. Threads: one starts, the others forward meanwhile. Signals: never starts in one.
 */
#ifndef LABELPROF_SESSION_H
#define LABELPROF_SESSION_H

#include <stdbool.h>

/* True: profiling is on and this process has an instance. May start either. */
bool session_is_on(void);

/* Profiling is on and this very process took part in it (not a vfork child in its parent's memory). */
bool session_owns_instance(void);

/* The process is about to end: writes the last profile, if a sample was taken. */
void session_end(void);

#endif
