/* SPDX-License-Identifier: MIT
 * The doors of thread creation and naming, and a thread's last act.
 */
#ifndef LABELPROF_INTERPOSE_THREAD_H
#define LABELPROF_INTERPOSE_THREAD_H

#include <stdbool.h>

/* While the regions are laid out. */
bool thread_open(void);
/* From the constructor, on the program's first thread: watch for its end too. */
void thread_open_main(void);

#endif
