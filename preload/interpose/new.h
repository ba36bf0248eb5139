/* SPDX-License-Identifier: MIT
 * operator new and delete: who provides them decides who counts.
 *
 * If they come from the allocator that also provides malloc (jemalloc, tcmalloc, mimalloc), their
 * blocks never pass the malloc door: they are counted here. If they come from elsewhere (libstdc++,
 * libc++, a program's own library), they call malloc: passed on, and counted there.
 */
#ifndef LABELPROF_INTERPOSE_NEW_H
#define LABELPROF_INTERPOSE_NEW_H

/* While starting up: leaves the frames of a passed-on operator new out at the leaf. */
void new_open(void);

#endif
