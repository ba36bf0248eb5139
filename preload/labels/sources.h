/* SPDX-License-Identifier: MIT
 * Labels that other libraries of the program publish for profilers in thread-local variables:
 * which objects define such a variable, and where the calling thread's own lies.
 *
 * Place: gather → sources → (otel | custom_labels).
 * Found by scanning the loaded objects; reached without a call into the loader, by reading what it
 * keeps for the thread (its dtv, or the offset in a relocated word). So a sample allocates nothing,
 * takes no lock, and may be taken in a signal handler or in the loader itself: docs/design.md.
 * Threads: scans by any, the newest result stays; readers are lock-free and counted, so that
 * dlclose waits for those that read while the memory may go. Allocation: none.
 * Failure: a variable not found is no label.
 */
#ifndef LABELPROF_LABELS_SOURCES_H
#define LABELPROF_LABELS_SOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "labels/source.h"

bool sources_open(void); /* while the regions are being laid out */

/* Around everything that uses what sources_read handed out. False: there is nothing to read. */
bool sources_begin(void);
void sources_end(void);

/* The calling thread's labels of one source (enum label_source): the first definer in load order
 * that has any. Between begin and end. */
void sources_read(uint64_t source, struct source_reading *reading);

/* Something may have come that the calling thread's labels need: a library, or names of attributes.
 * Cheap. The second is true once for each refresh: it is for those who ask another thread for one. */
bool sources_want_refresh(void);
bool sources_take_wish(void);

/* For a program of one thread, once a cycle: the next refresh scans, whatever the thread has used. */
void sources_wish_scan(void);

/* Scans the loaded objects (in a program of one thread, is_alone, only if wanted), and reads key names
 * if wanted; true: there is something new. Takes the loader's list lock and may read /proc/self:
 * outside malloc, or in a program of one thread. Inside the profiler, no lock of ours held. */
bool sources_refresh(bool is_alone);

/* The program may be single-threaded and inside malloc, called by code at `caller`: the loader's
 * list is whole, and it isn't the loader that calls. */
bool sources_may_scan_under(uintptr_t caller);

/* Once a cycle, and in a new process: what was found readable is asked anew. */
void sources_new_cycle(void);

/* Around a dlclose: what an object that may go had published is not read meanwhile. */
void sources_before_unload(void);
void sources_after_unload(void);

#endif
