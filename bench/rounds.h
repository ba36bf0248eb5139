/* SPDX-License-Identifier: MIT
 * The other end of bench/run: one round of a workload for each byte on stdin, one line "ns per
 * operation" on stdout for each. So a driver can hold several processes and ask them in turn.
 *
 * The number of operations is found once, so that a round takes about ROUND_NS. C and C++.
 * Allocation: none here, so that the program allocates what its workload does and no more.
 */
#ifndef LABELPROF_BENCH_ROUNDS_H
#define LABELPROF_BENCH_ROUNDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_NS = 8 * 1000 * 1000 };

/* Does the operation n times. */
typedef void workload_function(long n);

static inline double clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Processor time leaves out what others on the machine take; it also leaves out all waiting. */
static clockid_t rounds_clock __attribute__((unused)) = CLOCK_PROCESS_CPUTIME_ID;

static inline double time_ns(workload_function *work, long n)
{
    double from = clock_ns(rounds_clock);
    work(n);
    return clock_ns(rounds_clock) - from;
}

/* The faster of two, since a first call or an interruption would make the rounds too short. */
static inline double steady_ns(workload_function *work, long n)
{
    double first = time_ns(work, n), second = time_ns(work, n);
    return first < second ? first : second;
}

static inline long calibrated(workload_function *work)
{
    long n = 1;
    double ns = steady_ns(work, n);
    while (ns < ROUND_NS / 4) {
        n *= 2;
        ns = steady_ns(work, n);
    }
    return (long)((double)n * ROUND_NS / ns) + 1;
}

/* scale: operations that n counts, over those that are done for it. */
static inline int serve_rounds(workload_function *work, double scale)
{
    char byte, line[64];
    long n = calibrated(work);
    while (read(0, &byte, 1) == 1) {
        double ns = time_ns(work, n) * scale / (double)n;
        int n_bytes = snprintf(line, sizeof line, "%.4f\n", ns);
        if (write(1, line, (size_t)n_bytes) != n_bytes)
            return 1;
    }
    return 0;
}

#endif
