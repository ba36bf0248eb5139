/* SPDX-License-Identifier: MIT */
#include "base/pool.h"

void *pool_get(struct pool *pool, enum region region, size_t bytes)
{
    void **block = pool->free;
    if (!block)
        return region_take(region, bytes);
    /* Atomic only so that the commit is one store. */
    __atomic_store_n(&pool->free, *block, __ATOMIC_RELAXED);
    return block;
}

void pool_put(struct pool *pool, void *block)
{
    *(void **)block = pool->free;
    __atomic_store_n(&pool->free, block, __ATOMIC_RELAXED);
}
