/* SPDX-License-Identifier: MIT
 * The sampling law: against libm, and by experiment.
 *
 * The experiments have fixed seeds, so they pass or fail for good. Were the seeds drawn anew each
 * time, one whose bound is 5 standard deviations would fail by chance once in 1.7 million; there
 * are about 130 such bounds: one false alarm in 13 000 runs. */
#include "ledger_fixture.h"

#include <math.h>

#include "sample/poisson.h"

static const double sigmas = 5;
static const uint64_t kib = 1024, mib = 1024 * 1024, tib = UINT64_C(1) << 40;

/* ---- the functions ---- */

static void assert_close(double value, double expected, double relative_error)
{
    if (!(fabs(value - expected) <= relative_error * fabs(expected)))
        fail_msg("%.17g instead of %.17g", value, expected);
}

static void the_logarithm_agrees_with_libm(void **state)
{
    (void)state;
    assert_true(poisson_log(1) == 0);
    for (double x = 0x1p-60; x < 0x1p60; x *= 1.0009) {
        double expected = log(x);
        if (!(fabs(poisson_log(x) - expected) <= 1e-13 * (fabs(expected) > 1 ? fabs(expected) : 1)))
            fail_msg("log(%.17g): %.17g instead of %.17g", x, poisson_log(x), expected);
    }
}

static void one_minus_exp_agrees_with_libm(void **state)
{
    (void)state;
    assert_true(poisson_one_minus_exp(0) == 0);
    for (double x = 0x1p-41; x < 1000; x *= 1.0009)
        assert_close(poisson_one_minus_exp(x), -expm1(-x), 1e-13);
    for (double x = 0.499; x < 0.501; x += 1e-6)
        assert_close(poisson_one_minus_exp(x), -expm1(-x), 1e-13);
    for (double x = 49.9; x < 50.1; x += 1e-4)
        assert_close(poisson_one_minus_exp(x), -expm1(-x), 1e-13);
}

static void weight_times_probability_is_one(void **state)
{
    (void)state;
    const uint64_t intervals[] = {2, 3, 1000, 512 * kib, 1 << 30, tib};
    for (size_t i = 0; i < ARRAY_LENGTH(intervals); i++)
        for (double size = 1; size < 64.0 * (double)intervals[i]; size *= 1.07) {
            uint64_t bytes = (uint64_t)size;
            double p = -expm1(-(double)bytes / (double)intervals[i]);
            assert_close(poisson_weight(bytes, intervals[i]) * p, 1, 1e-12);
        }
}

static void an_object_of_no_bytes_weighs_what_one_of_a_byte_does(void **state)
{
    (void)state;
    assert_true(poisson_weight(0, 512 * kib) == poisson_weight(1, 512 * kib));
    assert_close(poisson_weight(0, 512 * kib), 512 * 1024 + 0.5, 1e-6);
}

static void at_an_interval_of_one_every_object_weighs_exactly_one(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (uint64_t size = 0; size < 100; size++)
        assert_true(poisson_weight(size, 1) == 1);
    assert_true(poisson_weight(64 * tib, 1) == 1);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(poisson_gap_bytes(&random, 1), 0);
}

static void the_documented_examples_are_right(void **state)
{
    (void)state;
    assert_close(1 / poisson_weight(64, 512 * kib), 1 / 8192.5, 1e-6);
    assert_close(1 / poisson_weight(512 * kib, 512 * kib), 0.632, 1e-3);
    assert_close(poisson_weight(512 * kib, 512 * kib), 1.582, 1e-3);
    assert_close(1 / poisson_weight(8 * 512 * kib, 512 * kib), 0.99966, 1e-5);
}

/* ---- the gaps ---- */

/* The bound is wider by 5 where few hits are expected and their law is not yet normal. */
static void assert_probability(uint64_t n_hits, uint64_t n, double p, const char *what)
{
    double deviation = sqrt((double)n * p * (1 - p));
    if (!(fabs((double)n_hits - (double)n * p) <= sigmas * deviation + 5))
        fail_msg("%s: %llu of %llu, p = %g", what, (unsigned long long)n_hits,
                 (unsigned long long)n, p);
}

/* P(gap < size) for sizes around the interval, from 1 B to 64 T. */
static void check_gaps(uint64_t interval)
{
    enum { N = 200000, N_SIZES = 14 };
    const double parts[N_SIZES] = {0,   0.001, 0.01, 0.05, 0.1, 0.25, 0.5,
                                   1.0, 1.5,   2,    4,    8,   16,   64};
    uint64_t random = interval * 2654435761u + 1, n_below[N_SIZES] = {0};
    double sum = 0;
    for (int i = 0; i < N; i++) {
        uint64_t gap = poisson_gap_bytes(&random, interval);
        sum += (double)gap;
        for (int j = 0; j < N_SIZES; j++)
            n_below[j] += gap < (uint64_t)((double)interval * parts[j]) + 1;
    }
    for (int j = 0; j < N_SIZES; j++) {
        uint64_t size = (uint64_t)((double)interval * parts[j]) + 1;
        assert_probability(n_below[j], N, -expm1(-(double)size / (double)interval), "gap < size");
    }
    /* The floor of an exponential is geometric: mean q/(1-q), variance q/(1-q)^2, q = e^(-1/T). */
    double not_q = -expm1(-1 / (double)interval), q = 1 - not_q;
    double deviation = sqrt(q * N) / not_q;
    assert_true(fabs(sum - N * (q / not_q)) <= sigmas * deviation);
}

static void gaps_of_mean_2_follow_the_law(void **state)
{
    (void)state;
    check_gaps(2);
}

static void gaps_of_mean_1000_follow_the_law(void **state)
{
    (void)state;
    check_gaps(1000);
}

static void gaps_of_mean_512k_follow_the_law(void **state)
{
    (void)state;
    check_gaps(512 * kib);
}

static void gaps_of_mean_1t_follow_the_law(void **state)
{
    (void)state;
    check_gaps(tib);
}

/* Chi-square over 64 classes of equal probability: 63 degrees of freedom; above 141 once in
 * 10 million (Wilson-Hilferty). Consecutive gaps are tested in pairs too. */
static void gaps_fill_all_parts_of_the_law_alike_also_in_pairs(void **state)
{
    (void)state;
    enum { N = 320000, CLASSES = 8 };
    double interval = 1 << 30;
    uint64_t random = 12345, counts[CLASSES * CLASSES] = {0};
    for (int i = 0; i < N; i++) {
        unsigned cell = 0;
        for (int j = 0; j < 2; j++) {
            double gap = (double)poisson_gap_bytes(&random, 1 << 30);
            cell = cell * CLASSES + (unsigned)(-expm1(-gap / interval) * CLASSES);
        }
        counts[cell]++;
    }
    double chi_square = 0, expected = (double)N / (CLASSES * CLASSES);
    for (int i = 0; i < CLASSES * CLASSES; i++)
        chi_square += pow((double)counts[i] - expected, 2) / expected;
    assert_true(chi_square < 141);
}

static void every_random_bit_is_set_half_the_time(void **state)
{
    (void)state;
    enum { N = 100000 };
    uint64_t random = 99, n_set[64] = {0};
    for (int i = 0; i < N; i++) {
        uint64_t bits = poisson_random(&random);
        for (int bit = 0; bit < 64; bit++)
            n_set[bit] += bits >> bit & 1;
    }
    for (int bit = 11; bit < 64; bit++) /* the 53 that are used */
        assert_probability(n_set[bit], N, 0.5, "bit");
}

/* ---- the law at work in a thread ---- */

/* As a door does it: the fast path, then the slow one. */
static bool is_sampled(uint64_t size, uint8_t *ret_lg_factor)
{
    return !sample_passes(size) && sample_due(size, ret_lg_factor);
}

static void seed_thread(uint64_t seed)
{
    thread_self.random = seed;
    thread_self.is_seeded = true;
    thread_self.remaining = poisson_gap_bytes(&thread_self.random, options.sample_bytes);
}

static void objects_of_one_size_are_sampled_with_its_probability(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1000", NULL);
    enum { N = 400000 };
    const uint64_t sizes[] = {0, 1, 16, 100, 1000, 5000, 64000};
    uint8_t lg_factor;
    seed_thread(4242);
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++) {
        uint64_t n_sampled = 0;
        for (int j = 0; j < N; j++)
            n_sampled += is_sampled(sizes[i], &lg_factor);
        uint64_t counted = sizes[i] ? sizes[i] : 1;
        assert_probability(n_sampled, N, -expm1(-(double)counted / 1000), "sampled");
    }
}

/* Var of an estimate is the sum over objects of size^2 (1 - p)/p; for counts, of (1 - p)/p. */
static void sums_of_weights_are_unbiased_for_any_mix_of_sizes(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=64k", NULL);
    double objects[4] = {0}, bytes[4] = {0}, n[4] = {0}, variance[4] = {0};
    const uint64_t sizes[4] = {24, 900, 30000, 500000};
    uint64_t choice = 7;
    seed_thread(31337);
    for (int i = 0; i < 2000000; i++) {
        uint64_t random = next_random(&choice) % 1000;
        unsigned kind = random < 900 ? 0 : random < 990 ? 1 : random < 999 ? 2 : 3;
        uint8_t lg_factor;
        double p = -expm1(-(double)sizes[kind] / 65536);
        n[kind]++;
        variance[kind] += (1 - p) / p;
        if (!is_sampled(sizes[kind], &lg_factor))
            continue;
        assert_int_equal(lg_factor, 0);
        objects[kind] += poisson_weight(sizes[kind], 65536);
        bytes[kind] += poisson_weight(sizes[kind], 65536) * (double)sizes[kind];
    }
    for (unsigned kind = 0; kind < 4; kind++) {
        assert_true(fabs(objects[kind] - n[kind]) <= sigmas * sqrt(variance[kind]));
        assert_close(bytes[kind], objects[kind] * (double)sizes[kind], 1e-9);
    }
}

static void at_an_interval_of_one_a_thread_samples_every_object(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint8_t lg_factor;
    for (uint64_t size = 0; size < 2000; size++)
        assert_true(is_sampled(size, &lg_factor));
}

static void a_new_thread_draws_its_own_gap_first(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1t", NULL);
    uint8_t lg_factor;
    assert_false(thread_self.is_seeded);
    assert_false(is_sampled(16, &lg_factor)); /* by chance once in 6 * 10^10 */
    assert_true(thread_self.is_seeded);
    assert_true(thread_self.remaining > 0);
    assert_int_not_equal(thread_self.random, 0);
}

static void a_thread_that_is_off_samples_nothing(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    sample_never();
    for (uint64_t size = 0; size < 1000; size++)
        assert_true(sample_passes(size * mib));
}

static void inside_the_profiler_a_due_sample_is_refused_and_counted(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint8_t lg_factor;
    seed_thread(1);
    assert_true(thread_enter());
    assert_false(is_sampled(1, &lg_factor));
    thread_leave();
    assert_int_equal(book_counts().refused, 1);
    assert_true(is_sampled(1, &lg_factor));
}

static void only_wide_intervals_take_blocks_of_their_own_alignment(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=131072", NULL);
    assert_true(sample_wants_placed());
    options.sample_bytes = 131071;
    assert_false(sample_wants_placed());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_logarithm_agrees_with_libm),
        cmocka_unit_test(one_minus_exp_agrees_with_libm),
        cmocka_unit_test(weight_times_probability_is_one),
        cmocka_unit_test(an_object_of_no_bytes_weighs_what_one_of_a_byte_does),
        cmocka_unit_test(at_an_interval_of_one_every_object_weighs_exactly_one),
        cmocka_unit_test(the_documented_examples_are_right),
        cmocka_unit_test(gaps_of_mean_2_follow_the_law),
        cmocka_unit_test(gaps_of_mean_1000_follow_the_law),
        cmocka_unit_test(gaps_of_mean_512k_follow_the_law),
        cmocka_unit_test(gaps_of_mean_1t_follow_the_law),
        cmocka_unit_test(gaps_fill_all_parts_of_the_law_alike_also_in_pairs),
        cmocka_unit_test(every_random_bit_is_set_half_the_time),
        cmocka_unit_test(objects_of_one_size_are_sampled_with_its_probability),
        cmocka_unit_test(sums_of_weights_are_unbiased_for_any_mix_of_sizes),
        cmocka_unit_test(at_an_interval_of_one_a_thread_samples_every_object),
        cmocka_unit_test(a_new_thread_draws_its_own_gap_first),
        cmocka_unit_test(a_thread_that_is_off_samples_nothing),
        cmocka_unit_test(inside_the_profiler_a_due_sample_is_refused_and_counted),
        cmocka_unit_test(only_wide_intervals_take_blocks_of_their_own_alignment),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
