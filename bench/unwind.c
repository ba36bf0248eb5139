/* SPDX-License-Identifier: MIT
 * What a stack costs: unwind_walk against glibc's backtrace() on the same stacks, A B A B in one
 * run, warm; then at first sight, by forgetting all rules before each walk.
 * Prints a line per round: "warm" or "cold", frames, ns per frame of unwind_walk (cold: per
 * distinct call site), ns per frame of backtrace().
 */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/region.h"
#include "unwind/find.h"
#include "unwind/walk.h"

enum { MAX_FRAMES = 256, ROUNDS = 15, WARM_REPEATS = 2000, COLD_REPEATS = 300 };

static struct stack_bounds bounds;
static int want_cold;

static __attribute__((noinline)) unsigned walk_here(uint64_t *frames)
{
    struct unwind_regs regs;
    __asm__ volatile("lea 0f(%%rip), %0\n0: mov %%rsp, %1\nmov %%rbp, %2"
                     : "=&r"(regs.pc), "=&r"(regs.sp), "=&r"(regs.bp));
    regs.pc++;
    return unwind_walk(regs, bounds, frames, MAX_FRAMES);
}

static uint64_t frames[MAX_FRAMES];
static void *pcs[MAX_FRAMES];

static unsigned distinct(void)
{
    unsigned n = walk_here(frames), n_distinct = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned j = 0;
        while (frames[j] != frames[i])
            j++;
        n_distinct += i == j;
    }
    return n_distinct;
}

/* Processor time: others on the machine take none of it. */
static uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double ns_per_walk(int use_glibc, int repeats)
{
    uint64_t from = processor_ns();
    for (int i = 0; i < repeats; i++) {
        if (want_cold)
            modules_new_generation();
        if (use_glibc)
            backtrace(pcs, MAX_FRAMES);
        else
            walk_here(frames);
    }
    return (double)(processor_ns() - from) / repeats;
}

static void measure(void)
{
    int repeats = want_cold ? COLD_REPEATS : WARM_REPEATS;
    unsigned n_frames = walk_here(frames);
    unsigned n_ours = want_cold ? distinct() : n_frames;
    for (int round = 0; round < ROUNDS; round++) {
        double ours = ns_per_walk(0, repeats), theirs = ns_per_walk(1, repeats / 10);
        printf("%s %u %.3f %.3f\n", want_cold ? "cold" : "warm", n_frames, ours / n_ours,
               theirs / n_frames);
    }
}

/* Functions whose frames are of several kinds, each with `left` frames still to make below it. */
static void descend(int left);
static void (*volatile go_on)(int) = descend; /* no call is inlined or turned into a jump */

static __attribute__((noinline)) void with_room(int left)
{
    volatile char room[200];
    room[0] = (char)left;
    go_on(left - 1);
    room[1] = room[0];
}

static __attribute__((noinline)) void with_alloca(int left)
{
    char *room = __builtin_alloca((size_t)(left & 15) * 16 + 16);
    __asm__ volatile("" : : "r"(room) : "memory");
    go_on(left - 1);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static __typeof(&bsearch) volatile search = bsearch; /* libc's, not the header's inline one */

static int called_back(const void *key, const void *element)
{
    (void)element;
    go_on(*(const int *)key - 1);
    __asm__ volatile("");
    return 0;
}

static __attribute__((noinline)) void through_libc(int left)
{
    int key = left - 2; /* bsearch's own frame, and called_back's */
    search(&key, &key, 1, sizeof(key), called_back);
    __asm__ volatile("");
}

static __attribute__((noinline)) void descend(int left)
{
    if (left <= 0)
        measure();
    else if (left % 8 == 0 && left > 3)
        through_libc(left - 1);
    else if (left % 3 == 0)
        with_alloca(left - 1);
    else if (left % 3 == 1)
        with_room(left - 1);
    else
        go_on(left - 1);
    __asm__ volatile(""); /* no tail calls */
}

int main(void)
{
    static const int depths[] = {12, 30, 100};
    enum { FRAMES_ABOVE = 7 }; /* walk_here, measure, the last descend, main, libc's 3 */
    extern void *__libc_stack_end;
    bounds.high = (uintptr_t)__libc_stack_end;
    bounds.low = bounds.high - (1 << 20);
    if (!region_open(1 << 20, 1 << 20) || !unwind_open())
        return 1;
    for (want_cold = 0; want_cold < 2; want_cold++)
        for (unsigned i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
            descend(depths[i] - FRAMES_ABOVE);
    return 0;
}
