/* SPDX-License-Identifier: MIT
 * A dump of many distinct samples: many_samples KIND COUNT DUMPS PATH, with
 * LABELPROF_SAMPLE_BYTES=1. KIND: "labels" (one stack, COUNT label values), "stacks" (COUNT stacks
 * of 24 frames, one label set), "mixed" (1,000 stacks of 17 frames under COUNT / 1,000 label
 * values).
 *
 * For each dump a line: ns of labelprof_dump() by the wall's clock and by the processor's, and KiB
 * of resident memory over what there was before, at its highest (VmHWM, reset through clear_refs).
 */
#include <fcntl.h>
#include <string.h>

#include "labelprof.h"
#include "rounds.h"

static const char *path;

/* Each of the low bits of `turns` chooses the caller of one frame. */
static void *descend(unsigned long turns, int left);

static __attribute__((noinline)) void *turn_left(unsigned long turns, int left)
{
    void *p = descend(turns, left);
    __asm__ volatile("" : : "r"(p));
    return p;
}

static __attribute__((noinline)) void *turn_right(unsigned long turns, int left)
{
    void *p = descend(turns, left);
    __asm__ volatile("" : : "r"(p));
    return p;
}

static __attribute__((always_inline)) inline void *descend(unsigned long turns, int left)
{
    if (left == 0)
        return malloc(24);
    return turns & 1 ? turn_right(turns >> 1, left - 1) : turn_left(turns >> 1, left - 1);
}

struct plan {
    const char *kind;
    long n_stacks;   /* 0: a stack of its own for each object */
    long n_of_label; /* objects of one label value in a row; 0: no label */
    int n_turns;
};

static const struct plan plans[] = {
    {"labels", 1, 1, 8},
    {"stacks", 0, 0, 20},
    {"mixed", 1000, 1000, 13},
};

static void allocate(const struct plan *plan, long i)
{
    char value[32];
    if (plan->n_of_label) {
        snprintf(value, sizeof value, "request-%ld", i / plan->n_of_label);
        labelprof_set("request", value);
    }
    long stack = plan->n_stacks ? i % plan->n_stacks : i;
    void *volatile kept = descend((unsigned long)stack, plan->n_turns);
    (void)kept;
}

static const struct plan *plan_of(const char *kind)
{
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        if (strcmp(plans[i].kind, kind) == 0)
            return &plans[i];
    exit(2);
}

static long status_kib(const char *field)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n_bytes = read(fd, text, sizeof text - 1);
    close(fd);
    text[n_bytes > 0 ? n_bytes : 0] = '\0';
    const char *at = strstr(text, field);
    return at ? strtol(at + strlen(field), NULL, 10) : 0;
}

static void reset_peak(void)
{
    int fd = open("/proc/self/clear_refs", O_WRONLY);
    if (write(fd, "5", 1) != 1)
        exit(1);
    close(fd);
}

static void dump(void)
{
    char line[96];
    reset_peak();
    long before_kib = status_kib("VmRSS:");
    double wall_from = clock_ns(CLOCK_MONOTONIC), from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    int result = labelprof_dump("heap", path);
    double ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from;
    int n_bytes =
        snprintf(line, sizeof line, "%.0f %.0f %ld\n", clock_ns(CLOCK_MONOTONIC) - wall_from, ns,
                 status_kib("VmHWM:") - before_kib);
    if (result || write(1, line, (size_t)n_bytes) != n_bytes)
        exit(1);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const struct plan *plan = plan_of(argv[1]);
    path = argv[4];
    for (long i = 0, count = strtol(argv[2], NULL, 10); i < count; i++)
        allocate(plan, i);
    for (long i = strtol(argv[3], NULL, 10); i > 0; i--)
        dump();
    return 0;
}
