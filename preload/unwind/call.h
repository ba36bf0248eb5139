/* SPDX-License-Identifier: MIT
 * Whether an address can be a return address: does a call instruction end there?
 *
 * Place: walk and rules → call. The only check on what a guess at a frame pointer finds.
 * Threads and signals: safe anywhere. Allocation: none. Failure: false.
 */
#ifndef LABELPROF_UNWIND_CALL_H
#define LABELPROF_UNWIND_CALL_H

#include <stdbool.h>
#include <stdint.h>

bool call_ends_at(uintptr_t address);

#endif
