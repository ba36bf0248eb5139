/* SPDX-License-Identifier: MIT */
#include "interpose/slow.h"

#include <errno.h>
#include <string.h>

#include "interpose/early.h"
#include "interpose/next.h"
#include "sample/sample.h"
#include "session.h"

/* What is larger stays where the allocator puts it: a calloc's pages may be zero without having been
 * touched. Smaller ones are placed like any malloc, so that the filter stays sharp. What realloc gives
 * always stays: it may have grown in place, and go on so. */
enum { IN_PLACE_BYTES = 8 * 1024 };

/* The registers on return to the door's caller: with a frame pointer, its saved rbp is at [rbp],
 * the return address above it, and the caller's stack above that. Only in functions the doors
 * tail-call. */
static inline __attribute__((always_inline)) struct unwind_regs caller_registers(void)
{
    uintptr_t *frame = __builtin_frame_address(0);
    return (struct unwind_regs){.pc = frame[1], .sp = (uintptr_t)(frame + 2), .bp = frame[0]};
}

static bool is_due(size_t size, uint8_t *ret_lg_factor)
{
    return !thread_self.is_private && session_is_on() && sample_due(size, ret_lg_factor);
}

static void *begin(void *p, size_t size, uint8_t lg_factor, struct unwind_regs caller)
{
    struct sample_object object = {p, size, lg_factor, caller};
    if (p && session_is_on()) /* asked anew: a handler may have forked, and this be the child */
        sample_begin(&object);
    return p;
}

/* thread_begin_private: NULL if this call is not the profiler's own, or the arena is spent. */
static void *private_block(size_t size)
{
    return unlikely(thread_self.is_private) ? early_alloc(size) : NULL;
}

static void *placed_or_plain(size_t size)
{
    void *p = sample_wants_placed() ? next.memalign(PLACED_ALIGNMENT, size) : NULL;
    return p ? p : next.malloc(size);
}

void *slow_malloc(size_t size)
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    void *p = private_block(size);
    if (p || !is_due(size, &lg_factor))
        return p ? p : next.malloc(size);
    return begin(placed_or_plain(size), size, lg_factor, caller);
}

static void *placed_zeroed(size_t size)
{
    void *p = next.memalign(PLACED_ALIGNMENT, size);
    return p ? memset(p, 0, size) : NULL;
}

void *slow_calloc(size_t n, size_t size)
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return next.calloc(n, size);
    void *p = private_block(bytes);
    if (p || !is_due(bytes, &lg_factor))
        return p ? p : next.calloc(n, size);
    if (bytes < IN_PLACE_BYTES && sample_wants_placed())
        p = placed_zeroed(bytes);
    return begin(p ? p : next.calloc(n, size), bytes, lg_factor, caller);
}

/* A larger alignment keeps the promise of a smaller one. NULL: not placed; what is no alignment is
 * the allocator's to judge. */
static void *placed_aligned(size_t alignment, size_t size)
{
    bool is_power = alignment && (alignment & (alignment - 1)) == 0;
    bool is_wanted = is_power && alignment >= sizeof(void *) && alignment < PLACED_ALIGNMENT &&
                     size < IN_PLACE_BYTES && sample_wants_placed();
    return is_wanted ? next.memalign(PLACED_ALIGNMENT, size) : NULL;
}

void *slow_aligned(size_t alignment, size_t size, size_t asked, void *(*allocate)(size_t, size_t))
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    if (!is_due(asked, &lg_factor))
        return allocate(alignment, size);
    void *p = placed_aligned(alignment, size);
    return begin(p ? p : allocate(alignment, size), asked, lg_factor, caller);
}

int slow_posix_memalign(void **ret, size_t alignment, size_t size, size_t asked)
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    if (!is_due(asked, &lg_factor))
        return next.posix_memalign(ret, alignment, size);
    void *p = placed_aligned(alignment, size);
    if (p)
        *ret = p;
    int error = p ? 0 : next.posix_memalign(ret, alignment, size);
    if (!error)
        begin(*ret, asked, lg_factor, caller);
    return error;
}

void *slow_paged(size_t size, void *(*allocate)(size_t))
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    bool is_sampled = is_due(size, &lg_factor);
    void *p = allocate(size);
    return is_sampled ? begin(p, size, lg_factor, caller) : p;
}

/* plain may throw: nothing of ours is held across it, and the next gap is drawn already. */
void *slow_new(size_t size, uintptr_t a, uintptr_t b, new_function *plain, new_function *aligned)
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    if (!is_due(size, &lg_factor))
        return plain(size, a, b);
    /* The aligned form takes its alignment second and the plain form's own argument third. */
    void *p = aligned && sample_wants_placed() ? aligned(size, PLACED_ALIGNMENT, a)
                                               : plain(size, a, b);
    return begin(p, size, lg_factor, caller);
}

void *slow_mallocx(size_t size, int flags)
{
    struct unwind_regs caller = caller_registers();
    uint8_t lg_factor;
    bool is_sampled = is_due(size, &lg_factor);
    void *p = next.mallocx(size, flags);
    return is_sampled ? begin(p, size, lg_factor, caller) : p;
}

/* ---- resizing: the old sample is taken away before the real call, since the address may be
 * anybody's after it, and comes back if the call fails ---- */

struct resize {
    struct special *old;
    void *old_block;
    struct sample_object object; /* the new object, if it is sampled */
    bool is_sampled;
};

static struct resize resize_begin(void *p, size_t size, bool counts, struct unwind_regs caller)
{
    struct resize resize = {.old_block = p, .object = {.size_bytes = size, .caller = caller}};
    if (counts && !sample_passes(size))
        resize.is_sampled = is_due(size, &resize.object.lg_factor);
    if (p && filter_may_hold(p))
        resize.old = sample_detach(p);
    return resize;
}

static void resize_end(struct resize *resize, void *result, bool did_free)
{
    resize->object.p = result;
    bool is_born = result && resize->is_sampled && session_is_on();
    if (resize->old && !sample_is_of(resize->old, resize->old_block))
        resize->old = NULL; /* a handler forked meanwhile: this is the child, and its ledger empty */
    if (resize->old && !did_free)
        sample_reattach(resize->old);
    else if (resize->old)
        sample_replace(resize->old, is_born ? &resize->object : NULL);
    else if (is_born)
        sample_begin(&resize->object);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void defer_free(void *p)
{
    void *head = __atomic_load_n(&thread_self.deferred_frees, __ATOMIC_RELAXED);
    /* A compare-and-swap because a handler may interrupt a handler; all on this one thread. */
    do
        *(void **)p = head;
    while (!__atomic_compare_exchange_n(&thread_self.deferred_frees, &head, p, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    __atomic_fetch_or(&thread_self.pending, PENDING_FREES, __ATOMIC_RELAXED);
}

/* A handler inside the profiler can't take p's sample away before the real call; so the new block
 * is a copy, and the old one goes the way of deferred frees. */
static void *realloc_by_copy(void *p, size_t size)
{
    size_t old_bytes = early_owns(p) ? early_size(p) : next.malloc_usable_size(p);
    void *copy = private_block(size);
    copy = copy ? copy : next.malloc(size);
    if (!copy)
        return NULL;
    memcpy(copy, p, smaller(old_bytes, size));
    slow_free(p);
    return copy;
}

static bool must_copy(const void *p)
{
    return early_owns(p) ||
           (thread_self.depth != 0 && filter_may_hold(p) && next.malloc_usable_size);
}

void *slow_realloc(void *p, size_t size)
{
    struct unwind_regs caller = caller_registers();
    if (unlikely(must_copy(p))) {
        if (size == 0)
            return slow_free(p), NULL;
        return realloc_by_copy(p, size);
    }
    /* realloc(p, 0) is a free; where it also allocates, the result is asked about afterwards. */
    struct resize resize = resize_begin(p, size, size != 0, caller);
    void *result = next.realloc(p, size);
    if (size == 0 && result && !sample_passes(0))
        resize.is_sampled = is_due(0, &resize.object.lg_factor);
    resize_end(&resize, result, result || size == 0);
    return result;
}

void *slow_rallocx(void *p, size_t size, int flags)
{
    struct unwind_regs caller = caller_registers();
    struct resize resize = resize_begin(p, size, true, caller);
    void *result = next.rallocx(p, size, flags);
    resize_end(&resize, result, result != NULL);
    return result;
}

size_t slow_xallocx(void *p, size_t size, size_t extra, int flags)
{
    struct unwind_regs caller = caller_registers();
    struct resize resize = resize_begin(p, size, true, caller);
    size_t usable_bytes = next.xallocx(p, size, extra, flags);
    bool did_resize = usable_bytes >= size;
    resize_end(&resize, did_resize ? p : NULL, did_resize);
    return usable_bytes;
}

/* ---- releasing ---- */

bool slow_release(void *p)
{
    if (!p || !filter_may_hold(p))
        return !early_owns(p);
    if (sample_end(p))
        return true;
    defer_free(p);
    return false;
}

void slow_free(void *p)
{
    if (slow_release(p))
        next.free(p);
}

void slow_free_deferred(void)
{
    void *p = __atomic_exchange_n(&thread_self.deferred_frees, NULL, __ATOMIC_RELAXED);
    while (p) {
        void *next_deferred = *(void **)p;
        slow_free(p);
        p = next_deferred;
    }
}
