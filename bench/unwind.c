/* SPDX-License-Identifier: MIT
 * What a stack costs: unwind_walk against glibc's backtrace() on the same stacks, A B A B in one
 * run, warm; then the first sight of every call site, by forgetting all rules before each walk.
 * Prints ns per frame (the fastest of the rounds of each) and the ratio. Alone on a core, please.
 */
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/region.h"
#include "base/sys.h"
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

static double ns_per_frame(int use_glibc, int repeats)
{
    static uint64_t frames[MAX_FRAMES];
    static void *pcs[MAX_FRAMES];
    unsigned long n_frames = 0;
    uint64_t from = sys_monotonic_ns();
    for (int i = 0; i < repeats; i++) {
        if (want_cold)
            modules_new_generation();
        n_frames += use_glibc ? (unsigned)backtrace(pcs, MAX_FRAMES) : walk_here(frames);
    }
    return (double)(sys_monotonic_ns() - from) / (double)n_frames;
}

static void measure(int depth)
{
    int repeats = want_cold ? COLD_REPEATS : WARM_REPEATS;
    double ours = 1e9, theirs = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double a = ns_per_frame(0, repeats), b = ns_per_frame(1, repeats / 10);
        ours = a < ours ? a : ours;
        theirs = b < theirs ? b : theirs;
    }
    printf("unwind %-11s depth %3d  labelprof %7.2f ns/frame  backtrace %7.2f ns/frame  ratio %.4f\n",
           want_cold ? "first sight" : "warm", depth, ours, theirs, ours / theirs);
}

/* Four functions with frames of their own kinds, so that the stack isn't one call site repeated. */
static int descend_a(int left, int depth);

static __attribute__((noinline)) int descend_d(int left, int depth)
{
    volatile char room[200];
    room[0] = (char)left;
    int result = descend_a(left, depth) + room[0];
    return result;
}

static __attribute__((noinline)) int descend_c(int left, int depth)
{
    char *room = __builtin_alloca((size_t)(left & 15) * 16 + 16);
    room[0] = (char)left;
    __asm__ volatile("" : : "r"(room) : "memory");
    return (left > 1 ? descend_d(left - 1, depth) : descend_a(left - 1, depth)) + room[0];
}

static int compare(const void *a, const void *b)
{
    (void)b;
    const int *left_depth = a;
    descend_c(left_depth[0], left_depth[1]);
    return 0;
}

static __attribute__((noinline)) int descend_b(int left, int depth)
{
    int key[2] = {left - 1, depth};
    if (left % 8 != 0)
        return descend_c(left - 1, depth) + 1;
    return bsearch(key, key, 1, sizeof(key), compare) != NULL;
}

static __attribute__((noinline)) int descend_a(int left, int depth)
{
    if (left > 0)
        return descend_b(left - 1, depth) + 1;
    measure(depth);
    return 0;
}

int main(void)
{
    static const int depths[] = {12, 30, 100};
    if (!region_open(1 << 20, 1 << 20) || !unwind_open())
        return 1;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bounds = (struct stack_bounds){here - (1 << 20), here + 64};
    extern void *__libc_stack_end;
    bounds.high = (uintptr_t)__libc_stack_end;
    for (want_cold = 0; want_cold < 2; want_cold++)
        for (unsigned i = 0; i < sizeof(depths) / sizeof(depths[0]); i++)
            descend_a(depths[i] - 3, depths[i]);
    return 0;
}
