/* SPDX-License-Identifier: MIT */
#include "sample/sample.h"

#include "base/lock.h"
#include "base/options.h"
#include "base/pool.h"
#include "base/sys.h"
#include "labels/gather.h"
#include "publish/flusher.h"
#include "record/book.h"
#include "record/cycle.h"
#include "record/specials.h"
#include "sample/poisson.h"

enum { LEAF_FRAMES = 2 }; /* operator new[] calling operator new: frames above the depth asked for */

/* Room for one sample in the making: too much for a small stack. As many exist as threads have ever
 * been sampled at one moment. */
struct scratch {
    struct scratch *next;
    uint64_t frames[STACK_DEPTH_MAX + LEAF_FRAMES];
    unsigned char labels[LABEL_SET_BYTES_MAX];
};

enum {
    STACK_NEEDED_BYTES = 3 * 1024, /* below the door: walk, gather, intern; measured: 2.4 KB */
    PLACED_MIN_INTERVAL_BYTES = 128 * 1024, /* 1 KB of alignment in 128 KiB: 0.8 % */
    MAX_LEAF_RANGES = 16,
};

static struct lock *scratch_lock; /* in LEDGER: free in the child of fork */
static struct pool *scratches;    /* in KEEP */

static struct {
    size_t n;
    struct {
        uintptr_t start, limit;
    } at[MAX_LEAF_RANGES];
} leaf_ranges; /* only ever grows */

bool sample_open(void)
{
    scratch_lock = region_fix(REGION_LEDGER, sizeof *scratch_lock);
    scratches = region_fix(REGION_KEEP, sizeof *scratches);
    return scratch_lock && scratches;
}

static bool is_leaf_to_skip(uintptr_t address)
{
    /* Pairs with the release below: a range is whole when it is counted. */
    size_t n = __atomic_load_n(&leaf_ranges.n, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < n; i++)
        if (address >= leaf_ranges.at[i].start && address < leaf_ranges.at[i].limit)
            return true;
    return false;
}

void sample_leave_out_at_leaf(uintptr_t start, uintptr_t limit)
{
    static struct lock adding; /* only tried: a frame too many, as if it were not known */
    if (is_leaf_to_skip(start) || !lock_try(&adding))
        return;
    size_t n = leaf_ranges.n;
    if (n == MAX_LEAF_RANGES) {
        lock_drop(&adding);
        return;
    }
    leaf_ranges.at[n].start = start;
    leaf_ranges.at[n].limit = limit;
    __atomic_store_n(&leaf_ranges.n, n + 1, __ATOMIC_RELEASE); /* pairs with is_leaf_to_skip */
    lock_drop(&adding);
}

void sample_never(void)
{
    thread_self.remaining = UINT64_MAX;
    thread_self.is_seeded = true;
}

void sample_forget_draw(void)
{
    thread_self.remaining = 0;
    thread_self.is_seeded = false;
}

static void draw(void)
{
    thread_self.lg_factor = book_lg_factor();
    thread_self.remaining =
        poisson_gap_bytes(&thread_self.random, options.sample_bytes << thread_self.lg_factor);
    thread_self.is_seeded = true;
}

/* Any seed is good; threads and processes must differ. */
static void seed(void)
{
    uint64_t mixed = sys_monotonic_ns() ^ __builtin_ia32_rdtsc() << 20 ^ (uintptr_t)&thread_self;
    thread_self.random = (mixed * UINT64_C(0x9E3779B97F4A7C15)) | 1;
    for (int i = 0; i < 4; i++)
        poisson_random(&thread_self.random);
}

bool sample_due(size_t size, uint8_t *ret_lg_factor)
{
    if (!thread_self.is_seeded) {
        seed();
        draw();
        if (sample_passes(size))
            return false;
    }
    *ret_lg_factor = thread_self.lg_factor;
    draw(); /* now, so that nothing is pending if the allocator throws */
    if (likely(thread_self.depth == 0) && thread_has_stack(STACK_NEEDED_BYTES))
        return true;
    book_count_refused();
    return false;
}

bool sample_wants_placed(void)
{
    return options.sample_bytes << book_lg_factor() >= PLACED_MIN_INTERVAL_BYTES;
}

static struct scratch *scratch_take(void)
{
    lock_take(scratch_lock);
    struct scratch *scratch = pool_get(scratches, REGION_KEEP, sizeof *scratch);
    lock_drop(scratch_lock);
    return scratch;
}

static void scratch_give(struct scratch *scratch)
{
    lock_take(scratch_lock);
    pool_put(scratches, scratch);
    lock_drop(scratch_lock);
}

static size_t gather(unsigned char *labels, uintptr_t caller)
{
    if (unlikely(thread_self.is_in_handler))
        return gather_labels(labels);
    flusher_refresh_sources(caller);
    size_t n_bytes = gather_labels(labels);
    if (unlikely(flusher_refresh_sources(caller)))
        n_bytes = gather_labels(labels);
    return n_bytes;
}

static struct special *enter(const struct sample_object *object, struct scratch *scratch)
{
    struct stack_bounds bounds = {thread_self.stack_low, thread_self.stack_high};
    struct book_sample sample = {.frames = scratch->frames,
                                 .labels = scratch->labels,
                                 .address = (uint64_t)(uintptr_t)object->p,
                                 .size_bytes = object->size_bytes,
                                 .lg_factor = object->lg_factor};
    unsigned depth = (unsigned)options.stack_depth;
    sample.n_frames = unwind_walk(object->caller, bounds, scratch->frames, depth + LEAF_FRAMES);
    while (sample.n_frames > 1 && is_leaf_to_skip((uintptr_t)FRAME_ADDRESS(sample.frames[0])))
        sample.frames++, sample.n_frames--;
    if (sample.n_frames > depth) {
        sample.n_frames = depth;
        scratch->frames[sample.frames - scratch->frames + depth - 1] = FRAME_TRUNCATED;
    }
    sample.n_label_bytes = gather(scratch->labels, object->caller.pc);
    return book_enter(&sample);
}

/* A special for the object, not yet on the table; NULL: refused, and counted. */
static struct special *make_special(const struct sample_object *object)
{
    struct scratch *scratch = scratch_take();
    if (!scratch) {
        book_count_refused();
        return NULL;
    }
    struct special *special = enter(object, scratch);
    scratch_give(scratch);
    return special;
}

static void after_events(uint64_t address, uint32_t n_events)
{
    if (unlikely(n_events > SWEEP_AT))
        cycle_assist(address);
}

/* Refused after its block was taken, perhaps with an alignment of our own. */
static void refuse(const struct sample_object *object)
{
    if (((uintptr_t)object->p & (PLACED_ALIGNMENT - 1)) == 0)
        filter_inherit(object->p);
}

static void publish_birth(struct special *special, const struct sample_object *object)
{
    uint64_t address = special->address;
    uint32_t n_events;
    if (specials_insert(special, &n_events))
        after_events(address, n_events);
    else {
        book_withdraw(special);
        refuse(object);
    }
}

void sample_begin(const struct sample_object *object)
{
    if (!thread_enter()) {
        book_count_refused();
        refuse(object);
        return;
    }
    struct special *special = make_special(object);
    if (special)
        publish_birth(special, object);
    else
        refuse(object);
    flusher_tick();
    thread_leave();
}

bool sample_end(void *p)
{
    if (!thread_enter())
        return false;
    uint32_t n_events;
    if (specials_free(p, &n_events))
        after_events((uint64_t)(uintptr_t)p, n_events);
    thread_leave();
    return true;
}

struct special *sample_detach(void *p)
{
    if (!thread_enter())
        return NULL;
    struct special *special = specials_detach(p);
    thread_leave();
    return special;
}

bool sample_is_of(const struct special *special, const void *p)
{
    return special->address == (uint64_t)(uintptr_t)p;
}

void sample_reattach(struct special *special)
{
    thread_enter(); /* cannot fail: sample_detach was outside too */
    specials_reattach(special);
    thread_leave();
}

void sample_replace(struct special *ended, const struct sample_object *born_object)
{
    thread_enter();
    struct special *born = born_object ? make_special(born_object) : NULL;
    uint64_t address = born ? born->address : ended->address;
    uint32_t n_events;
    if (!born)
        specials_end(ended, &n_events);
    else if (!specials_replace(ended, born, &n_events))
        book_withdraw(born);
    after_events(address, n_events);
    flusher_tick();
    thread_leave();
}
