/* SPDX-License-Identifier: MIT
 * The doors of jemalloc's own family. Without a jemalloc behind us they are served by malloc
 * (next.c): a program that finds them by a weak reference mixes them with free.
 */
#include "base/attributes.h"
#include "interpose/next.h"
#include "interpose/slow.h"
#include "sample/sample.h"

void *mallocx(size_t, int);
void *rallocx(void *, size_t, int);
size_t xallocx(void *, size_t, size_t, int);
void dallocx(void *, int);
void sdallocx(void *, size_t, int);

EXPORT void *mallocx(size_t size, int flags)
{
    return sample_passes(size) ? next.mallocx(size, flags) : slow_mallocx(size, flags);
}

EXPORT void *rallocx(void *p, size_t size, int flags)
{
    if (slow_is_needless(p) && sample_passes(size))
        return next.rallocx(p, size, flags);
    return slow_rallocx(p, size, flags);
}

EXPORT size_t xallocx(void *p, size_t size, size_t extra, int flags)
{
    if (slow_is_needless(p) && sample_passes(size))
        return next.xallocx(p, size, extra, flags);
    return slow_xallocx(p, size, extra, flags);
}

EXPORT void dallocx(void *p, int flags)
{
    if (slow_is_needless(p) || slow_release(p))
        next.dallocx(p, flags);
}

/* The size goes on only where it can't mislead: see filter_is_inherited. */
EXPORT void sdallocx(void *p, size_t size, int flags)
{
    if (slow_is_needless(p) && !filter_is_inherited(p))
        next.sdallocx(p, size, flags);
    else if (slow_release(p))
        next.dallocx(p, flags);
}
