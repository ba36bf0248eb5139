/* SPDX-License-Identifier: MIT
 * The sampling law, pure. See docs/sampling.md.
 *
 * Every byte is a point of a Poisson process of rate 1/T. The gap to the next point is
 * exponential, floored to whole bytes: an object of size s is sampled iff gap < s, hence with
 * p(s) = 1 - e^(-s/T), and stands for 1/p(s) objects and s/p(s) bytes: unbiased for every object on
 * its own. Size 0 is sampled like size 1 and counts 0 bytes. Worked: T = 512 KiB, s = 64 B:
 * p = 1/8192.5; s = T: p = 0.632, weight 1.582; s = 8T: p = 0.99966.
 * T = 1: every object, weight exactly 1.
 * Threads and signals: pure functions of their arguments. No libm (a NEEDED entry less).
 */
#ifndef LABELPROF_SAMPLE_POISSON_H
#define LABELPROF_SAMPLE_POISSON_H

#include <stdint.h>

/* Advances *state (any value but 0) and returns 64 random bits. */
uint64_t poisson_random(uint64_t *state);

/* Bytes to pass before the sampled byte: floor of an exponential of mean interval_bytes. */
uint64_t poisson_gap_bytes(uint64_t *state, uint64_t interval_bytes);

/* 1/p(size). Relative error below 1e-12. */
double poisson_weight(uint64_t size_bytes, uint64_t interval_bytes);

/* Natural logarithm of x > 0 and 1 - e^(-x) for x >= 0, for the two above and their tests. */
double poisson_log(double x);
double poisson_one_minus_exp(double x);

#endif
