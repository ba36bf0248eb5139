/* SPDX-License-Identifier: MIT
 * The allocator behind us: for each door the same symbol of whoever comes next (glibc, jemalloc,
 * tcmalloc, mimalloc; linked or preloaded after us). Never one synthesised from another,
 * but for jemalloc's family where there is no jemalloc (next.c).
 *
 * Place: the floor of interpose/. Threads: pointers are written once, by the first call or the
 * constructor, before any other thread can exist in practice; others wait. Signals: resolving is
 * over before main.
 * Allocation: dlsym may allocate while it resolves malloc; those calls get blocks of early.h.
 * Failure: a symbol nobody defines keeps a stand-in that fails as the function would (NULL).
 */
#ifndef LABELPROF_INTERPOSE_NEXT_H
#define LABELPROF_INTERPOSE_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <signal.h>
#include <threads.h>

struct next {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *); /* NULL unless malloc's own */
    void *(*mallocx)(size_t, int);
    void *(*rallocx)(void *, size_t, int);
    size_t (*xallocx)(void *, size_t, size_t, int);
    void (*dallocx)(void *, int);
    void (*sdallocx)(void *, size_t, int);
};
extern struct next next __attribute__((visibility("hidden")));

/* What is not on an allocation path. NULL if nobody has it. */
struct next_other {
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*thrd_create)(thrd_t *, thrd_start_t, void *);
    int (*pthread_setname_np)(pthread_t, const char *);
    int (*prctl)(int, ...);
    int (*dlclose)(void *);
    void (*exit_now)(int); /* _exit */
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
    void (*(*signal)(int, void (*)(int)))(int);
    void (*(*sysv_signal)(int, void (*)(int)))(int);
};
extern struct next_other next_other __attribute__((visibility("hidden")));

/* Fills everything in; cheap when that is done. */
void next_resolve(void);

/* The shared object that defines this address, as an opaque identity; NULL: none. */
const void *next_provider(const void *address);

/* The symbol of whoever comes next; NULL: nobody. Leaves no error for dlerror(). */
void *next_symbol(const char *name);

/* The program's malloc is ours, so that all calls come through the doors. */
extern bool next_is_behind_us __attribute__((visibility("hidden")));

/* NULL if what the doors see is one allocator, whole; else what is wrong. */
const char *next_mismatch(void);

#endif
