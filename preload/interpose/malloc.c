/* SPDX-License-Identifier: MIT
 * The doors of the malloc family: guard and forward, nothing else.
 *
 * Nearly every call leaves by the first return: one subtraction or one load, and a tail call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/attributes.h"
#include "interpose/next.h"
#include "interpose/slow.h"
#include "sample/sample.h"

/* Old or new C libraries leave some of these out of their headers. */
void *reallocarray(void *, size_t, size_t);
void *memalign(size_t, size_t);
void *aligned_alloc(size_t, size_t);
int posix_memalign(void **, size_t, size_t);
void *valloc(size_t);
void *pvalloc(size_t);
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
void cfree(void *);
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);

EXPORT void *malloc(size_t size)
{
    return sample_passes(size) ? next.malloc(size) : slow_malloc(size);
}

EXPORT void free(void *p)
{
    if (slow_is_needless(p))
        next.free(p);
    else
        slow_free(p);
}

EXPORT void *calloc(size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || sample_passes(bytes))
        return next.calloc(n, size);
    return slow_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
    if (!p)
        return sample_passes(size) ? next.realloc(p, size) : slow_malloc(size);
    if (likely(size != 0) && slow_is_needless(p) && sample_passes(size))
        return next.realloc(p, size);
    return slow_realloc(p, size);
}

/* glibc's calls realloc through this very door; so the frame between would be the leaf. */
EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (unlikely(!next_is_behind_us))
        return next.reallocarray(p, n, size); /* the realloc it calls isn't this one */
    if (!__builtin_mul_overflow(n, size, &bytes))
        return realloc(p, bytes);
    errno = ENOMEM;
    return NULL;
}

/* What the program asked for: more than one layer up, if the caller is an aligned operator new. */
static inline size_t asked_bytes(size_t alignment, size_t size)
{
    size_t asked = thread_self.asked_bytes;
    if (likely(asked == 0))
        return size;
    thread_self.asked_bytes = 0;
    return round_up(asked, alignment) == size ? asked : size;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    size_t asked = asked_bytes(alignment, size);
    return sample_passes(asked) ? next.memalign(alignment, size)
                                : slow_aligned(alignment, size, asked, next.memalign);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    size_t asked = asked_bytes(alignment, size);
    return sample_passes(asked) ? next.aligned_alloc(alignment, size)
                                : slow_aligned(alignment, size, asked, next.aligned_alloc);
}

EXPORT int posix_memalign(void **ret, size_t alignment, size_t size)
{
    size_t asked = asked_bytes(alignment, size);
    return sample_passes(asked) ? next.posix_memalign(ret, alignment, size)
                                : slow_posix_memalign(ret, alignment, size, asked);
}

EXPORT void *valloc(size_t size)
{
    return sample_passes(size) ? next.valloc(size) : slow_paged(size, next.valloc);
}

EXPORT void *pvalloc(size_t size)
{
    return sample_passes(size) ? next.pvalloc(size) : slow_paged(size, next.pvalloc);
}

/* The free that the program's malloc belongs to. */
static void free_of_program(void *p)
{
    if (likely(next_is_behind_us)) {
        free(p);
        return;
    }
    void (*in_front)(void *);
    void *symbol = dlsym(RTLD_DEFAULT, "free");
    memcpy(&in_front, &symbol, sizeof in_front);
    in_front(p);
}

EXPORT void cfree(void *p)
{
    free_of_program(p);
}

/* C23; glibc 2.36 has neither. The size is a hint we must not pass on: a sampled block lies where
 * its size alone would not put it. */
EXPORT void free_sized(void *p, size_t size)
{
    (void)size;
    free_of_program(p);
}

EXPORT void free_aligned_sized(void *p, size_t alignment, size_t size)
{
    (void)alignment;
    (void)size;
    free_of_program(p);
}
