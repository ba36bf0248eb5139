/* SPDX-License-Identifier: MIT
 * jemalloc's own family, in a program linked with jemalloc: 10 objects of 100 B live from
 * by_mallocx, 10 freed by dallocx, 10 by sdallocx; by_rallocx leaves 10 of 500 B; xallocx grows a
 * block in place or not at all. */
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include "common.h"

static NOINLINE void *by_mallocx(void)
{
    void *object = mallocx(100, MALLOCX_ALIGN(64) | MALLOCX_ZERO);
    CHECK(object && (uintptr_t)object % 64 == 0 && !*(char *)object);
    return object;
}

static NOINLINE void *by_rallocx(void *object)
{
    object = rallocx(object, 500, 0);
    CHECK(object);
    return object;
}

static NOINLINE void *by_xallocx(void)
{
    void *object = malloc(100);
    CHECK(xallocx(object, 110, 0, 0) >= 110); /* the class of 112 */
    CHECK(xallocx(object, 1 << 20, 0, 0) < 1 << 20);
    return object;
}

int main(void)
{
    for (int i = 0; i < 10; i++) {
        by_mallocx();
        dallocx(by_mallocx(), MALLOCX_ALIGN(64));
        sdallocx(by_mallocx(), 100, MALLOCX_ALIGN(64));
        by_rallocx(by_mallocx());
        by_xallocx();
    }
    return 0;
}
