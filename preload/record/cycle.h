/* SPDX-License-Identifier: MIT
 * The three-stage publish cycle: each published profile is an exact cut in time.
 *
 *   gather    events of cycle c: a special's birth or end, put on its stripe's list under the
 *             stripe's lock, where the cycle number is read
 *   sweep     the lists go into record.future[c mod 3]
 *   publish   once c+1 runs and every stripe has been passed, no event of c can still arrive:
 *             future[c mod 3] is added to record.active
 *
 * Why it is exact: an event reads the number inside a stripe lock. cycle_publish first advances the
 * number, then takes each stripe's lock once: whoever holds it afterwards reads the new number.
 * An object's end is never of an older cycle than its birth: the number only grows, and the
 * program's own hand-over of the pointer orders the two reads. Hence no count is ever negative.
 *
 * Threads: cycle_publish under the publish lock (publish/dump.c); it takes book and stripe locks.
 * Signals: not in a handler inside the profiler.
 */
#ifndef LABELPROF_RECORD_CYCLE_H
#define LABELPROF_RECORD_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

bool cycle_open(void);

/* Stage (cycle mod 3) of an event happening now. Under a stripe's lock. */
unsigned cycle_stage(void);
uint64_t cycle_number(void);

/* Advances the cycle and publishes the one that ended: on return record.active is the exact set of
 * events up to an instant during this call. */
void cycle_publish(void);

/* The thread that finds more than SWEEP_AT events on the stripe of this address sweeps them, so
 * that lists stay short whatever the flusher does. */
void cycle_assist(uint64_t address);

#endif
