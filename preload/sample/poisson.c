/* SPDX-License-Identifier: MIT */
#include "sample/poisson.h"

#include <string.h>

static const double ln_2 = 0.693147180559945309417232121458;
static const double sqrt_half = 0.707106781186547524400844362105;

/* xorshift64*: period 2^64 - 1; its high bits, which alone are used, pass the usual test suites. */
uint64_t poisson_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(r), r = (m-1)/(m+1), |r| < 0.172: the
 * first term left out, 2 r^17/17, is below 2e-14. */
double poisson_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1022;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FE0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m < sqrt_half)
        m *= 2, exponent--;
    double r = (m - 1) / (m + 1), square = r * r, sum = 0;
    for (int k = 15; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return 2 * r * sum + exponent * ln_2;
}

uint64_t poisson_gap_bytes(uint64_t *state, uint64_t interval_bytes)
{
    if (interval_bytes <= 1)
        return 0;
    /* Uniform in (0, 1]: 53 bits, never 0, so the gap is at most 36.8 intervals. */
    double uniform = (double)((poisson_random(state) >> 11) + 1) * 0x1p-53;
    return (uint64_t)(-poisson_log(uniform) * (double)interval_bytes);
}

/* Taylor series of 1 - e^(-x); for x <= 1/2 the first term left out is below 1e-17. */
static double one_minus_exp_small(double x)
{
    double sum = 0;
    for (int k = 14; k >= 1; k--)
        sum = x / k * (1 - sum);
    return sum;
}

double poisson_one_minus_exp(double x)
{
    int halvings = 0;
    if (x > 50)
        return 1;
    while (x > 0.5) {
        x *= 0.5;
        halvings++;
    }
    /* 1 - e^(-2x) = y (2 - y) with y = 1 - e^(-x). */
    double y = one_minus_exp_small(x);
    while (halvings--)
        y *= 2 - y;
    return y;
}

double poisson_weight(uint64_t size_bytes, uint64_t interval_bytes)
{
    if (interval_bytes <= 1)
        return 1;
    double size = size_bytes ? (double)size_bytes : 1;
    return 1 / poisson_one_minus_exp(size / (double)interval_bytes);
}
