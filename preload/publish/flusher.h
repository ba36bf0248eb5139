/* SPDX-License-Identifier: MIT
 * Who runs the cycle: a background thread where the program has threads of its own (or asked for
 * dumps at an interval), else whoever samples and exit.
 *
 * Never started from malloc, a signal handler or an atfork handler: only from the doors of thread
 * creation and from the constructor. All signals are blocked in it. It ends itself when the program
 * is down to one thread for a cycle, and at once when its last thread is gone, so that a process
 * whose main thread called pthread_exit ends as it would alone.
 * Threads: the functions below may be called by any. Failure: without the thread, samplers tick.
 */
#ifndef LABELPROF_PUBLISH_FLUSHER_H
#define LABELPROF_PUBLISH_FLUSHER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

bool flusher_open(void);

typedef int flusher_create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Starts the thread unless it runs. Outside the profiler, where the program could create one. */
void flusher_start(flusher_create_function *create);

/* The program's threads besides its first: one more, one less. The last one of all waits in
 * flusher_thread_ended until the flusher is gone, so that it is the one that ends the process. */
void flusher_thread_began(void);
void flusher_thread_ended(void);

/* Async-signal-safe. True: the thread runs and will dump now; false: do it yourself. */
bool flusher_ask_dump(void);

/* Around gathering a sample's labels, for code at `caller`: label sources that came or went are
 * looked for, if something is wanted: at once in a program of one thread (true: there is something
 * new), else by the flusher, which is woken. Not in a signal handler; inside the profiler, no lock held. */
bool flusher_refresh_sources(uintptr_t caller);

/* After a sample: runs a due cycle, or a due dump, if there is no thread to do it. Inside the
 * profiler, no lock held. */
void flusher_tick(void);

#endif
