/* SPDX-License-Identifier: MIT
 * The aligned family: every result aligned as asked, usable to its end, freed by free. Of each,
 * 10 objects of 100 B stay and 10 are freed; valloc and pvalloc round up themselves. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include "common.h"

static NOINLINE void *by_memalign(void)
{
    void *object = memalign(64, 100);
    CHECK((uintptr_t)object % 64 == 0);
    return object;
}

static NOINLINE void *by_aligned_alloc(void)
{
    void *object = aligned_alloc(256, 100);
    CHECK((uintptr_t)object % 256 == 0);
    return object;
}

static NOINLINE void *by_posix_memalign(void)
{
    void *object = NULL;
    CHECK(!posix_memalign(&object, 4096, 100) && (uintptr_t)object % 4096 == 0);
    return object;
}

static NOINLINE void *by_huge_alignment(void)
{
    void *object = NULL;
    CHECK(!posix_memalign(&object, 1 << 21, 100) && (uintptr_t)object % (1 << 21) == 0);
    return object;
}

static NOINLINE void *by_valloc(void)
{
    void *object = valloc(100);
    CHECK((uintptr_t)object % 4096 == 0);
    return object;
}

static NOINLINE void *by_pvalloc(void)
{
    void *object = pvalloc(100);
    CHECK((uintptr_t)object % 4096 == 0 && malloc_usable_size(object) >= 4096);
    return object;
}

static void try_one(void *(*make)(void))
{
    for (int i = 0; i < 20; i++) {
        void *object = make();
        CHECK(object);
        memset(object, 0x55, 100);
        CHECK(malloc_usable_size(object) >= 100);
        if (i % 2)
            free(object);
    }
}

int main(void)
{
    void *untouched = &errno;
    try_one(by_memalign);
    try_one(by_aligned_alloc);
    try_one(by_posix_memalign);
    try_one(by_huge_alignment);
    try_one(by_valloc);
    try_one(by_pvalloc);
    CHECK(posix_memalign(&untouched, 3, 100) == EINVAL && untouched == &errno);
    CHECK(posix_memalign(&untouched, 4096, PTRDIFF_MAX) == ENOMEM && untouched == &errno);
    return 0;
}
