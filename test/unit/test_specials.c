/* SPDX-License-Identifier: MIT
 * The exact table of live samples and the filter before it. */
#include "ledger_fixture.h"

static const struct label_bytes no_labels;

static struct special *enter(uint64_t address, uint64_t size_bytes)
{
    struct special *special = enter_sample(1, &no_labels, address, size_bytes);
    assert_non_null(special);
    return special;
}

static uint32_t insert(uint64_t address, uint64_t size_bytes)
{
    uint32_t n_events = 0;
    assert_true(specials_insert(enter(address, size_bytes), &n_events));
    return n_events;
}

static bool free_it(uint64_t address)
{
    uint32_t n_events;
    return specials_free((void *)address, &n_events);
}

static bool may_hold(uint64_t address)
{
    return filter_may_hold((void *)address);
}

static int64_t inuse_bytes(void)
{
    cycle_publish();
    return published_totals().inuse_bytes >> LG_BYTE_UNIT;
}

static void an_address_is_found_once(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    assert_false(free_it(0x5010)); /* also on a table that does not exist yet */
    insert(0x5010, 10);
    assert_false(free_it(0x5000));
    assert_true(free_it(0x5010));
    assert_false(free_it(0x5010));
    insert(0x5010, 20);
    assert_int_equal(inuse_bytes(), 20);
    assert_true(free_it(0x5010));
    assert_int_equal(inuse_bytes(), 0);
}

static void the_filter_is_clean_again_after_the_last_sample(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    enum { N = 5000 };
    for (uint64_t i = 0; i < N; i++)
        insert(0x7f0000000010 + i * 48, 10);
    for (uint64_t i = 0; i < N; i++)
        assert_true(may_hold(0x7f0000000010 + i * 48));
    for (uint64_t i = 0; i < N; i++)
        assert_true(free_it(0x7f0000000010 + i * 48));
    for (size_t i = 0; i < ARRAY_LENGTH(filter.bits); i++)
        assert_int_equal(filter.bits[i], 0);
    assert_int_equal(filter_count(), 0);
}

static void samples_that_share_a_bit_keep_it_until_the_last_goes(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint64_t same[300];
    size_t n = 0;
    for (uint64_t address = 0x10000; n < ARRAY_LENGTH(same); address += 8)
        if (filter_hash((void *)address) == filter_hash((void *)0x10000))
            same[n++] = address;
    for (size_t i = 0; i < 10; i++)
        insert(same[i], 1);
    for (size_t i = 0; i < 10; i++) {
        assert_true(may_hold(same[i]));
        assert_true(free_it(same[i]));
    }
    assert_false(may_hold(same[0]));
    for (size_t i = 0; i < 300; i++) /* more than a count can tell: the bit stays for good */
        insert(same[i], 1);
    for (size_t i = 0; i < 300; i++) {
        assert_true(may_hold(same[i]));
        assert_true(free_it(same[i]));
    }
    insert(same[0], 1);
    assert_true(may_hold(same[0]));
}

static void pointers_are_told_by_their_place_in_a_page(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    assert_true(filter_is_ordinary((void *)0x5400));
    insert(0x5400, 10);
    assert_false(filter_is_ordinary((void *)0x5400));
    assert_false(filter_is_ordinary((void *)0x9400));
    assert_true(filter_is_ordinary((void *)0x5410));
    insert(0x7010, 10);
    insert(0x5020, 10);
    assert_int_equal(filter_count(), 3);
    assert_false(filter_is_ordinary((void *)0x5010));
    assert_true(free_it(0x7010));
    assert_true(filter_is_ordinary((void *)0x5010));
    struct special *special = specials_detach((void *)0x5020);
    assert_true(filter_is_ordinary((void *)0x5020));
    specials_reattach(special);
    assert_false(filter_is_ordinary((void *)0x5020));
    assert_true(free_it(0x5020));
    assert_true(free_it(0x5400));
    assert_int_equal(filter_count(), 0);
}

static void in_a_child_the_filter_keeps_only_early_blocks(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    insert(0x5400, 10);
    filter.n_early = 2;
    specials_reset_filter();
    assert_int_equal(filter_count(), 2);
    assert_int_equal(filter.n_at[EARLY_PLACE], 2);
    assert_false(may_hold(0x5400));
    assert_true(filter_is_inherited((void *)0x5400)); /* so that no size hint is passed on for it */
    assert_false(filter_is_inherited((void *)0x5410));
}

static void a_block_that_was_placed_and_then_refused_is_remembered(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=512k", NULL);
    while (region_take(REGION_KEEP, 16))
        continue; /* no room for a sample in the making */
    struct sample_object object = {.p = (void *)0x40000400, .size_bytes = 100};
    assert_false(filter_is_inherited(object.p));
    sample_begin(&object);
    assert_int_equal(book_counts().refused, 1);
    assert_true(filter_is_inherited(object.p)); /* no size hint is passed on for it */
}

static void the_table_grows_and_keeps_every_sample(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    enum { N = 100000 };
    for (uint64_t i = 0; i < N; i++) {
        uint32_t n_events = insert(0x7f0000000010 + i * 16, 1);
        if (n_events > SWEEP_AT)
            cycle_assist(0x7f0000000010 + i * 16);
    }
    uint32_t n_specials = 0;
    for (unsigned i = 0; i < STRIPES; i++) {
        const struct stripe *stripe = specials_stripe(i);
        n_specials += stripe->n_specials;
        assert_true(stripe->n_specials <= UINT32_C(1) << stripe->lg_buckets);
        assert_true(stripe->n_events <= SWEEP_AT + 1);
    }
    assert_int_equal(n_specials, N);
    assert_int_equal(inuse_bytes(), N);
    for (uint64_t i = N; i-- > 0;)
        assert_true(free_it(0x7f0000000010 + i * 16));
    assert_int_equal(inuse_bytes(), 0);
}

static void an_address_that_comes_again_ends_the_sample_before(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    insert(0x5010, 10);
    insert(0x5010, 20); /* both within a cycle */
    assert_int_equal(inuse_bytes(), 20);
    insert(0x5010, 40); /* a cycle apart */
    assert_int_equal(inuse_bytes(), 40);
    assert_int_equal(book_counts().implied_frees, 2);
    assert_int_equal(filter_count(), 1);
    assert_true(free_it(0x5010));
    assert_false(free_it(0x5010));
    assert_int_equal(inuse_bytes(), 0);
    assert_int_equal(published_totals().alloc_bytes, 70 << LG_BYTE_UNIT);
}

static void a_detached_sample_lives_but_is_not_found(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    insert(0x5010, 10);
    struct special *special = specials_detach((void *)0x5010);
    assert_non_null(special);
    assert_null(specials_detach((void *)0x5010));
    assert_false(free_it(0x5010));
    assert_false(may_hold(0x5010));
    assert_int_equal(inuse_bytes(), 10);
    specials_reattach(special);
    assert_true(may_hold(0x5010));
    assert_int_equal(inuse_bytes(), 10);
    assert_true(free_it(0x5010));
    assert_int_equal(inuse_bytes(), 0);
}

static void a_detached_samples_address_may_be_anothers_meanwhile(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events;
    insert(0x5010, 10);
    struct special *special = specials_detach((void *)0x5010);
    insert(0x5010, 20);
    assert_int_equal(book_counts().implied_frees, 0);
    assert_int_equal(inuse_bytes(), 30);
    specials_end(special, &n_events);
    assert_int_equal(inuse_bytes(), 20);
    assert_true(may_hold(0x5010));
    assert_true(free_it(0x5010));
}

static void check_replace(uint64_t to, bool is_published_between)
{
    uint32_t n_events;
    insert(0x5010, 10);
    if (is_published_between)
        assert_int_equal(inuse_bytes(), 10);
    struct special *ended = specials_detach((void *)0x5010);
    assert_true(specials_replace(ended, enter(to, 30), &n_events));
    assert_int_equal(inuse_bytes(), 30);
    assert_true(may_hold(to));
    assert_int_equal(free_it(0x5010), to == 0x5010);
    assert_int_equal(free_it(to), to != 0x5010);
    assert_int_equal(inuse_bytes(), 0);
}

static void a_replaced_sample_ends_as_its_heir_begins(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    check_replace(0x5010, false); /* grown in place */
    check_replace(0x5010, true);
    for (uint64_t to = 0x6010; to < 0x6010 + 200 * 16; to += 16) { /* moved, to any stripe */
        check_replace(to, false);
        check_replace(to, true);
    }
    assert_int_equal(book_counts().implied_frees, 0);
}

static void replacing_onto_an_address_that_is_taken_ends_that_sample_too(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events;
    insert(0x5010, 10);
    insert(0x6010, 20);
    assert_true(specials_replace(specials_detach((void *)0x5010), enter(0x6010, 40), &n_events));
    assert_int_equal(inuse_bytes(), 40);
    assert_int_equal(book_counts().implied_frees, 1);
}

static void a_withdrawn_sample_never_was(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_LABEL_SETS=1", NULL);
    insert(0x5010, 10);
    struct label_bytes labels = request_labels(1);
    book_withdraw(enter_sample(1, &labels, 0x6010, 20));
    labels = request_labels(2);
    book_withdraw(enter_sample(1, &labels, 0x6010, 20));
    assert_int_equal(book_counts().samples, 1);
    assert_int_equal(book_counts().refused, 2);
    assert_int_equal(inuse_bytes(), 10);
    assert_int_equal(published_totals().alloc_bytes, 10 << LG_BYTE_UNIT);
    assert_int_equal(sets_live_count(), 3); /* none, request 1, (other) */
}

/* ---- the budget ---- */

static void a_spent_ledger_refuses_new_samples_and_loses_no_end(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_MEMORY=1m", NULL);
    const uint64_t base = 0x7f0000000010;
    uint64_t n = 0, n_tried = 0;
    for (uint32_t n_events; n_tried < 100000; n_tried++) {
        struct special *special = enter_sample(1, &no_labels, base + n * 16, 1);
        if (special && specials_insert(special, &n_events))
            n++;
        else if (special)
            book_withdraw(special);
    }
    assert_true(n > 1000 && n < n_tried);
    assert_int_equal(book_counts().samples, n);
    assert_int_equal(book_counts().refused, n_tried - n);
    assert_true(region_used_bytes(REGION_LEDGER) <= 1 << 20);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(may_hold(base + i * 16));
        assert_true(free_it(base + i * 16));
    }
    assert_int_equal(inuse_bytes(), 0);
    for (uint64_t i = 0; i < n; i++) /* what was freed serves again */
        assert_non_null(enter_sample(1, &no_labels, base + i * 16, 1));
}

static void without_room_for_a_table_a_sample_is_not_inserted(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_MEMORY=1m", NULL);
    struct special *special = enter(0x5010, 10);
    while (region_take(REGION_LEDGER, 16))
        continue;
    uint32_t n_events;
    assert_false(specials_insert(special, &n_events));
    assert_false(may_hold(0x5010));
    assert_int_equal(filter_count(), 0);
    book_withdraw(special);
    assert_int_equal(inuse_bytes(), 0);
}

static void the_interval_doubles_past_three_quarters_and_live_samples_keep_theirs(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1000", "LABELPROF_MAX_MEMORY=2m", NULL);
    insert(0x5010, 100);
    int64_t one = published_totals().inuse_bytes;
    cycle_publish();
    one = published_totals().inuse_bytes - one;
    uint8_t before = 0;
    for (uint64_t i = 1; region_used_bytes(REGION_LEDGER) < (2 << 20) - 1000; i++) {
        size_t used = region_used_bytes(REGION_LEDGER), three_quarters = (2 << 20) / 4 * 3;
        uint8_t factor = book_lg_factor();
        assert_true(factor >= before);
        assert_int_equal(factor > 0, used > three_quarters);
        size_t doublings = 1 + (used - three_quarters) / ((2 << 20) / 128);
        if (factor) /* 1000 << 31 is the first interval past the largest there is */
            assert_int_equal(factor, doublings < 31 ? doublings : 31);
        before = factor;
        region_take(REGION_LEDGER, 512);
        book_withdraw(enter(0x6010, 10)); /* whoever samples next notices */
    }
    assert_true(before >= 8);
    insert(0x6010, 100);
    cycle_publish();
    int64_t both = published_totals().inuse_bytes;
    assert_true(both - one > 100 * one); /* the second stands for 2^8 times as much, or more */
    assert_true(free_it(0x5010));
    cycle_publish();
    assert_int_equal(published_totals().inuse_bytes, both - one);
    assert_true(free_it(0x6010));
    assert_int_equal(inuse_bytes(), 0);
}

static void the_interval_never_passes_the_largest_there_is(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1t", "LABELPROF_MAX_MEMORY=1m", NULL);
    while (region_take(REGION_LEDGER, 64))
        continue;
    enter_sample(1, &no_labels, 0x5010, 10);
    assert_int_equal(book_lg_factor(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_found_once),
        cmocka_unit_test(the_filter_is_clean_again_after_the_last_sample),
        cmocka_unit_test(samples_that_share_a_bit_keep_it_until_the_last_goes),
        cmocka_unit_test(pointers_are_told_by_their_place_in_a_page),
        cmocka_unit_test(in_a_child_the_filter_keeps_only_early_blocks),
        cmocka_unit_test(a_block_that_was_placed_and_then_refused_is_remembered),
        cmocka_unit_test(the_table_grows_and_keeps_every_sample),
        cmocka_unit_test(an_address_that_comes_again_ends_the_sample_before),
        cmocka_unit_test(a_detached_sample_lives_but_is_not_found),
        cmocka_unit_test(a_detached_samples_address_may_be_anothers_meanwhile),
        cmocka_unit_test(a_replaced_sample_ends_as_its_heir_begins),
        cmocka_unit_test(replacing_onto_an_address_that_is_taken_ends_that_sample_too),
        cmocka_unit_test(a_withdrawn_sample_never_was),
        cmocka_unit_test(a_spent_ledger_refuses_new_samples_and_loses_no_end),
        cmocka_unit_test(without_room_for_a_table_a_sample_is_not_inserted),
        cmocka_unit_test(the_interval_doubles_past_three_quarters_and_live_samples_keep_theirs),
        cmocka_unit_test(the_interval_never_passes_the_largest_there_is),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
