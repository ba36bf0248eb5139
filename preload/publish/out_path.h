/* SPDX-License-Identifier: MIT
 * LABELPROF_OUT: the template of a profile's name.
 *
 * Threads: out_path_open runs once, at start, and fixes the directory that relative names count
 * from, the program's base name and the host name. Failure: a name that does not fit is -ENAMETOOLONG.
 */
#ifndef LABELPROF_PUBLISH_OUT_PATH_H
#define LABELPROF_PUBLISH_OUT_PATH_H

#include <stddef.h>
#include <stdint.h>

void out_path_open(void);

/* Expands %e %p %t %n %h %%, the only ones options.c lets through. 0 or -ENAMETOOLONG. */
int out_path_expand(const char *type, uint64_t sequence_number, char *out, size_t capacity);

#endif
