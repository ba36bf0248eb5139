/* SPDX-License-Identifier: MIT
 * The least a preload library can do: forward the malloc family, and new and delete, through cached
 * pointers. What it costs over bare is the price of being there at all; the profiler is measured
 * against it.
 *
 * Threads, signals: the pointers are found by the constructor or by the first call, whichever is
 * first; the same values are written whoever does it. dlsym of a symbol that exists does not
 * allocate in glibc.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void find_all(void);

static void *first_malloc(size_t size);
static void first_free(void *p);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t size);

static void *(*next_malloc)(size_t) = first_malloc;
static void (*next_free)(void *) = first_free;
static void *(*next_calloc)(size_t, size_t) = first_calloc;
static void *(*next_realloc)(void *, size_t) = first_realloc;
static void *(*next_memalign)(size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_new)(size_t);
static void (*next_delete)(void *);
static void (*next_sized_delete)(void *, size_t);

static void *first_malloc(size_t size)
{
    find_all();
    return next_malloc(size);
}

static void first_free(void *p)
{
    find_all();
    next_free(p);
}

static void *first_calloc(size_t n, size_t size)
{
    find_all();
    return next_calloc(n, size);
}

static void *first_realloc(void *p, size_t size)
{
    find_all();
    return next_realloc(p, size);
}

static void find(void *slot, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(slot, &found, sizeof found);
}

static __attribute__((constructor)) void find_all(void)
{
    find(&next_malloc, "malloc");
    find(&next_free, "free");
    find(&next_calloc, "calloc");
    find(&next_realloc, "realloc");
    find(&next_memalign, "memalign");
    find(&next_aligned_alloc, "aligned_alloc");
    find(&next_posix_memalign, "posix_memalign");
    find(&next_new, "_Znwm");
    find(&next_delete, "_ZdlPv");
    find(&next_sized_delete, "_ZdlPvm");
}

void *malloc(size_t size)
{
    return next_malloc(size);
}

void free(void *p)
{
    next_free(p);
}

void *calloc(size_t n, size_t size)
{
    return next_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return next_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
    return next_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return next_aligned_alloc(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    return next_posix_memalign(ret, alignment, size);
}

/* Called by C++ programs, which have them behind us in libstdc++ or the allocator. */
void *_Znwm(size_t size);
void _ZdlPv(void *p);
void _ZdlPvm(void *p, size_t size);

void *_Znwm(size_t size)
{
    return next_new(size);
}

void _ZdlPv(void *p)
{
    next_delete(p);
}

void _ZdlPvm(void *p, size_t size)
{
    next_sized_delete(p, size);
}
