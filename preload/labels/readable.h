/* SPDX-License-Identifier: MIT
 * May memory that a stranger's pointer names be read? Asked of the kernel once a page and cycle.
 *
 * Place: under the label readers. A page found readable is trusted until readable_forget, so a
 * broken writer's pointer is noticed unless its page goes away within the same cycle.
 * Threads and signals: one table for all, of single words; safe anywhere. Allocation: none.
 */
#ifndef LABELPROF_LABELS_READABLE_H
#define LABELPROF_LABELS_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool readable_open(void); /* while the regions are being laid out */

/* True: every byte of [address, address + n_bytes) can be read. Each page not known yet costs a
 * system call and one of *n_probes_left; with none left the answer is false. */
bool readable(uintptr_t address, size_t n_bytes, unsigned *n_probes_left);

/* Memory may have gone: ask anew. */
void readable_forget(void);

#endif
