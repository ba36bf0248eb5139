/* SPDX-License-Identifier: MIT */
#include "ledger_fixture.h"

#include "labels/heavy.h"

static uint32_t spread(uint64_t i)
{
    return (uint32_t)(i * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

static void sets_of_one_sample_each_prove_nothing(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=512k", NULL);
    for (uint64_t i = 1; i < 300000; i++)
        assert_false(heavy_add(spread(i), 512 * 1024, 1024));
}

static void little_evidence_proves_nothing(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=512k", NULL);
    for (uint64_t i = 1; i < HEAVY_SAMPLES_A_PLACE * 16; i++)
        assert_false(heavy_add(1, 1000, 16));
    assert_true(heavy_add(1, 1000, 16));
}

/* A bucket may have given the set a counter with somebody else's bytes: none of those count. */
static void nobody_is_proven_by_what_others_allocated(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=16", NULL); /* one bucket */
    uint64_t total = 0, own = 0;
    for (uint64_t i = 1; i < 20000; i++) {
        total += 2 * 100;
        own += 100;
        heavy_add(spread(i), 100, 4);
        if (heavy_add(7, 100, 4))
            assert_true(own >= total / 4);
    }
    for (uint64_t i = 1; i < 20000; i++) {
        total += 100;
        if (heavy_add(spread(i) | 1, 100, 4))
            fail_msg("proven by a sample or two of %llu", (unsigned long long)total);
    }
}

static void each_of_several_heavy_sets_is_found_among_many(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=512k", NULL);
    bool is_proven[8] = {false};
    for (uint64_t i = 1; i < 400000; i++) {
        heavy_add(spread(i), 100, 1024);
        is_proven[i % 8] |= heavy_add(spread(1000000 + i % 8), 10, 1024); /* 1.1 % of all each */
    }
    for (int i = 0; i < 8; i++)
        assert_true(is_proven[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_one_sample_each_prove_nothing),
        cmocka_unit_test(little_evidence_proves_nothing),
        cmocka_unit_test(nobody_is_proven_by_what_others_allocated),
        cmocka_unit_test(each_of_several_heavy_sets_is_found_among_many),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
