/* SPDX-License-Identifier: MIT
 * LABELPROF_DUMP_SIGNAL and LABELPROF_EXIT_SIGNALS, and the doors that keep the program from seeing
 * them: for a signal that is ours, sigaction and signal answer from the program's own view.
 *
 * Threads: the view is under a lock. Signals: the handler dumps if its thread is outside the
 * profiler; else it leaves a note that is acted on when the thread comes out.
 */
#ifndef LABELPROF_INTERPOSE_SIGNAL_H
#define LABELPROF_INTERPOSE_SIGNAL_H

/* Installs what the options ask for, where the disposition is the default. From the constructor. */
void signal_open(void);
/* What a handler left for later (thread_self.pending), at depth 0. */
void signal_run_pending(unsigned pending);

#endif
