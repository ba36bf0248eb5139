/* SPDX-License-Identifier: MIT */
#include "interpose/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <sched.h>
#include <string.h>

#include "base/attributes.h"
#include "base/loader.h"
#include "base/thread.h"
#include "interpose/early.h"

/* ---- stand-ins: in place until the symbol is resolved, and for good if nobody has it ---- */

static bool resolve_for_caller(void);

static void *fail(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *first_malloc(size_t size)
{
    return resolve_for_caller() ? next.malloc(size) : early_alloc(size);
}

static void first_free(void *p)
{
    if (!early_owns(p) && resolve_for_caller())
        next.free(p);
}

static void *first_calloc(size_t n, size_t size)
{
    if (resolve_for_caller())
        return next.calloc(n, size);
    return __builtin_mul_overflow(n, size, &size) ? fail() : early_alloc(size);
}

static void *first_realloc(void *p, size_t size)
{
    if (resolve_for_caller())
        return next.realloc(p, size);
    void *moved = early_alloc(size);
    if (moved && early_owns(p))
        memcpy(moved, p, early_size(p) < size ? early_size(p) : size);
    return moved;
}

static void *first_reallocarray(void *p, size_t n, size_t size)
{
    return resolve_for_caller() && next.reallocarray != first_reallocarray
               ? next.reallocarray(p, n, size)
               : fail();
}

static void *first_memalign(size_t alignment, size_t size)
{
    if (resolve_for_caller())
        return next.memalign != first_memalign ? next.memalign(alignment, size) : fail();
    return alignment <= 16 ? early_alloc(size) : fail();
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
    if (resolve_for_caller())
        return next.aligned_alloc != first_aligned_alloc ? next.aligned_alloc(alignment, size)
                                                         : fail();
    return alignment <= 16 ? early_alloc(size) : fail();
}

static int first_posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (resolve_for_caller() && next.posix_memalign != first_posix_memalign)
        return next.posix_memalign(ret, alignment, size);
    return ENOMEM;
}

static void *first_valloc(size_t size)
{
    return resolve_for_caller() && next.valloc != first_valloc ? next.valloc(size) : fail();
}

static void *first_pvalloc(size_t size)
{
    return resolve_for_caller() && next.pvalloc != first_pvalloc ? next.pvalloc(size) : fail();
}

/* Without a jemalloc: a program that finds our door by a weak reference takes it for one, and may
 * mix it with free. jemalloc's flags: lg of the alignment in the low six bits, then zero. */
static void *mallocx_by_malloc(size_t size, int flags)
{
    size_t alignment = (size_t)1 << (flags & 63);
    void *p = alignment > 16 ? next.memalign(alignment, size) : next.malloc(size);
    return p && (flags & 64) ? memset(p, 0, size) : p;
}

static void *first_mallocx(size_t size, int flags)
{
    bool is_there = resolve_for_caller() && next.mallocx != first_mallocx;
    return is_there ? next.mallocx(size, flags) : mallocx_by_malloc(size, flags);
}

static void *first_rallocx(void *p, size_t size, int flags)
{
    bool is_there = resolve_for_caller() && next.rallocx != first_rallocx;
    return is_there ? next.rallocx(p, size, flags) : next.realloc(p, size);
}

/* In place and no larger: an answer that is always allowed. */
static size_t first_xallocx(void *p, size_t size, size_t extra, int flags)
{
    if (resolve_for_caller() && next.xallocx != first_xallocx)
        return next.xallocx(p, size, extra, flags);
    return next.malloc_usable_size ? next.malloc_usable_size(p) : 0;
}

static void first_dallocx(void *p, int flags)
{
    if (resolve_for_caller() && next.dallocx != first_dallocx)
        next.dallocx(p, flags);
    else
        next.free(p);
}

static void first_sdallocx(void *p, size_t size, int flags)
{
    if (resolve_for_caller() && next.sdallocx != first_sdallocx)
        next.sdallocx(p, size, flags);
    else
        next.free(p);
}

struct next next = {
    .malloc = first_malloc,
    .free = first_free,
    .calloc = first_calloc,
    .realloc = first_realloc,
    .reallocarray = first_reallocarray,
    .memalign = first_memalign,
    .aligned_alloc = first_aligned_alloc,
    .posix_memalign = first_posix_memalign,
    .valloc = first_valloc,
    .pvalloc = first_pvalloc,
    .mallocx = first_mallocx,
    .rallocx = first_rallocx,
    .xallocx = first_xallocx,
    .dallocx = first_dallocx,
    .sdallocx = first_sdallocx,
};
struct next_other next_other;
bool next_is_behind_us;

/* ---- resolving ---- */

struct symbol {
    const char *name;
    void *slot;
};

static const struct symbol symbols[] = {
    /* free first: dlsym's own blocks may be released as soon as malloc is known. */
    {"free", &next.free},
    {"malloc", &next.malloc},
    {"calloc", &next.calloc},
    {"realloc", &next.realloc},
    {"reallocarray", &next.reallocarray},
    {"memalign", &next.memalign},
    {"aligned_alloc", &next.aligned_alloc},
    {"posix_memalign", &next.posix_memalign},
    {"valloc", &next.valloc},
    {"pvalloc", &next.pvalloc},
    {"malloc_usable_size", &next.malloc_usable_size},
    {"pthread_create", &next_other.pthread_create},
    {"thrd_create", &next_other.thrd_create},
    {"pthread_setname_np", &next_other.pthread_setname_np},
    {"prctl", &next_other.prctl},
    {"dlclose", &next_other.dlclose},
    {"_exit", &next_other.exit_now},
    {"sigaction", &next_other.sigaction},
    {"signal", &next_other.signal},
    {"__sysv_signal", &next_other.sysv_signal},
};

/* Asked for only if the first is there: a miss costs the loader more than a hit. */
static const struct symbol jemalloc_symbols[] = {
    {"mallocx", &next.mallocx},
    {"rallocx", &next.rallocx},
    {"xallocx", &next.xallocx},
    {"dallocx", &next.dallocx},
    {"sdallocx", &next.sdallocx},
};

static const void *resolver; /* the thread at work, by the address of its TLS; atomic */
static bool is_resolved;     /* atomic; release pairs with the acquire in resolve_for_caller */

static bool find(const struct symbol *symbol)
{
    void *found = dlsym(RTLD_NEXT, symbol->name);
    if (found)
        memcpy(symbol->slot, &found, sizeof found);
    return found != NULL;
}

/* A look-up that misses leaves an error for the program's next dlerror(). One that hits takes it back.
 * dlerror() itself must not be called: it translates, which takes the locale's lock, and the malloc
 * that brought us here may come from newlocale. */
static void forget_misses(void)
{
    dlsym(RTLD_NEXT, "free");
}

/* A program that isn't position-independent and takes malloc's address has it in itself, as an
 * undefined symbol with a value: its calls come to us all the same. */
static bool is_malloc_ours(void)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    void *first = dlsym(RTLD_DEFAULT, "malloc");
    if (next_provider(first) == next_provider(&next))
        return true;
    return dladdr1(first, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
           symbol->st_shndx == SHN_UNDEF;
}

static void resolve_all(void)
{
    loader_open();
    for (size_t i = 0; i < ARRAY_LENGTH(symbols); i++)
        find(&symbols[i]);
    bool is_there = true;
    for (size_t i = 0; i < ARRAY_LENGTH(jemalloc_symbols) && is_there; i++)
        is_there = find(&jemalloc_symbols[i]);
    /* It must know the blocks it is asked about. */
    if (next_provider((void *)(uintptr_t)next.malloc_usable_size) !=
        next_provider((void *)(uintptr_t)next.malloc))
        next.malloc_usable_size = NULL;
    next_is_behind_us = is_malloc_ours();
    forget_misses();
}

void *next_symbol(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        forget_misses();
    return found;
}

/* False: this thread is resolving right now, and dlsym allocates. */
static bool resolve_for_caller(void)
{
    const void *nobody = NULL, *self = &thread_self;
    if (__atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE))
        return true;
    if (__atomic_load_n(&resolver, __ATOMIC_RELAXED) == self)
        return false;
    if (__atomic_compare_exchange_n(&resolver, &nobody, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        resolve_all();
        __atomic_store_n(&is_resolved, true, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&is_resolved, __ATOMIC_ACQUIRE))
        sched_yield();
    return true;
}

void next_resolve(void)
{
    resolve_for_caller();
}

const void *next_provider(const void *address)
{
    struct dl_find_object found;
    return loader_find((uintptr_t)address, &found) ? found.dlfo_link_map : NULL;
}

const char *next_mismatch(void)
{
    const void *provider = next_provider((const void *)(uintptr_t)next.malloc);
    if (!next_is_behind_us)
        return "another malloc stands in front of labelprof (the program's own, or one earlier in "
               "LD_PRELOAD)";
    if (next_provider((const void *)(uintptr_t)next.free) != provider ||
        next_provider((const void *)(uintptr_t)next.realloc) != provider ||
        next_provider((const void *)(uintptr_t)next.calloc) != provider)
        return "malloc, calloc, realloc and free come from different libraries";
    return NULL;
}
