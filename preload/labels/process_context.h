/* SPDX-License-Identifier: MIT
 * Names of OpenTelemetry thread attributes, from the process context: a mapping named OTEL_CTX that
 * an SDK publishes in its own process, with a header and a pointer to a protobuf payload.
 *
 * Finding it reads /proc/self/maps, and the payload is copied through /proc/self/mem, so that a
 * publisher which frees it meanwhile makes a read fail, not fault. Hence: only where I/O is
 * allowed; a sample that meets an unknown index asks for it and goes without.
 * Threads: keys are read lock-free, from one of two maps that take turns; refreshing is by whoever
 * comes first, others pass. Signals: process_context_key and _is_wanted are safe anywhere.
 * Failure: no names; looked for again at most once a second.
 */
#ifndef LABELPROF_LABELS_PROCESS_CONTEXT_H
#define LABELPROF_LABELS_PROCESS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool process_context_open(void); /* while the regions are being laid out */

/* The name of an attribute; NULL: not known yet, which asks for a refresh. An index whose name can
 * be no label has length 0. */
const char *process_context_key(uint8_t index, size_t *ret_bytes);

/* Somebody asked; and long enough after the last look. */
bool process_context_is_wanted(void);
bool process_context_is_time(void);

/* Looks if it is wanted and time, or, in a program of one thread (is_alone), if what was published
 * has changed. True: there is something new. May do I/O; inside the profiler, no lock held. */
bool process_context_refresh(bool is_alone);

/* Names that changed without a new index are noticed once a cycle. */
void process_context_new_cycle(void);

#endif
