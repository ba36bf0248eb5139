/* SPDX-License-Identifier: MIT
 * A free list of equal blocks on top of a region.
 *
 * The struct lives in the region it takes from, so that a wiped region finds its pools empty.
 * Locking is the caller's. A put or get is committed by one store to `free`: a thread that a fork
 * leaves behind in the middle loses at most one block, never the list.
 * Failure: NULL when the region is spent.
 */
#ifndef LABELPROF_BASE_POOL_H
#define LABELPROF_BASE_POOL_H

#include "base/region.h"

struct pool {
    void *free;
};

/* Not zeroed when it was used before. `bytes` must be the same for every call on one pool. */
void *pool_get(struct pool *pool, enum region region, size_t bytes);
void pool_put(struct pool *pool, void *block);

#endif
