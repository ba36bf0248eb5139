/* SPDX-License-Identifier: MIT
 * Records: one per stack, label set and size label; what stays, what goes, what is walked. */
#include "ledger_fixture.h"

#include "record/stacks.h"

static struct record *get(uint64_t stack_id, uint64_t request, uint64_t size_label)
{
    const uint64_t frames[] = {1000 + stack_id};
    struct label_bytes labels = request_labels(request);
    struct label_set *set = sets_get(labels.bytes, labels.n_bytes);
    struct record *record = records_get(stacks_get(frames, 1), set, size_label);
    sets_put(set);
    return record;
}

static unsigned n_walked(void)
{
    unsigned n = 0;
    uint64_t cursor = 0;
    for (struct record *record; (record = records_next(&cursor)) != NULL;)
        n += record->active.alloc_objects != 0;
    return n;
}

static void stack_set_and_size_make_a_record(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=10", NULL);
    struct record *record = get(1, 1, 16);
    assert_ptr_equal(get(1, 1, 16), record);
    assert_ptr_not_equal(get(2, 1, 16), record);
    assert_ptr_not_equal(get(1, 2, 16), record);
    assert_ptr_not_equal(get(1, 1, 17), record);
    assert_int_equal(records_count(), 4);
    assert_int_equal(record->n_live, 2);
    assert_ptr_equal(records_total(record), record);
}

static void without_a_place_the_total_is_another_record_under_other(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get(1, 1, 16);
    struct record *record = get(1, 2, 16), *total = records_total(record);
    assert_ptr_not_equal(total, record);
    assert_string_equal(set_text(region_at(total->set)), "*request=(other),service=shop");
    assert_int_equal(total->stack, record->stack);
    assert_int_equal(total->size_label, 16);
    assert_int_equal(total->n_live, 0);
    assert_ptr_equal(records_total(get(1, 3, 16)), total);
    assert_ptr_not_equal(records_total(get(1, 3, 17)), total);
}

static void a_record_of_a_place_stays_when_nothing_of_it_lives(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct record *record = get(1, 1, 16);
    records_unget(record);
    assert_int_equal(records_count(), 1);
    assert_ptr_equal(get(1, 1, 16), record);
}

static void a_record_without_a_place_goes_with_its_last_sample_and_so_does_its_set(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get(1, 1, 16);
    struct record *record = get(1, 2, 16);
    get(1, 2, 16);
    assert_int_equal(sets_live_count(), 3);
    records_unget(record);
    assert_int_equal(records_count(), 3);
    records_unget(record);
    assert_int_equal(records_count(), 2); /* the place's and the total under (other) */
    assert_int_equal(sets_live_count(), 2);
    assert_ptr_equal(get(1, 3, 16), record); /* its memory serves again */
}

static void events_that_gather_keep_a_record_until_they_are_folded(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get(1, 1, 16);
    struct record *record = get(1, 2, 16);
    records_future(record, 1)->inuse_objects += 5;
    records_unget(record);
    assert_int_equal(records_count(), 3);
    records_fold(0);
    assert_int_equal(records_count(), 3);
    assert_false(records_stage_is_empty(1));
    records_fold(1);
    assert_int_equal(records_count(), 2);
    assert_true(records_stage_is_empty(1));
}

static void folding_adds_one_stage_to_what_is_published(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct record *record = get(1, 1, 16);
    for (unsigned stage = 0; stage < STAGES; stage++)
        *records_future(record, stage) =
            (struct totals){10 + stage, 20 + stage, 30 + stage, 40 + stage};
    records_fold(1);
    assert_int_equal(record->active.alloc_objects, 11);
    assert_int_equal(record->active.alloc_bytes, 21);
    assert_int_equal(record->active.inuse_objects, 31);
    assert_int_equal(record->active.inuse_bytes, 41);
    records_fold(1);
    assert_int_equal(record->active.inuse_bytes, 41);
    records_future(record, 1)->inuse_bytes -= 41;
    records_fold(1);
    assert_int_equal(record->active.inuse_bytes, 0);
    records_fold(0);
    records_fold(2);
    assert_int_equal(record->active.alloc_objects, 11 + 10 + 12);
}

static void a_record_used_again_begins_at_zero(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get(1, 1, 16);
    struct record *record = get(1, 2, 16);
    for (unsigned stage = 0; stage < STAGES; stage++)
        records_future(record, stage)->inuse_bytes += 7 - (int)stage * 7; /* 7, 0, -7 */
    records_unget(record);
    for (unsigned stage = 0; stage < STAGES; stage++)
        records_fold(stage);
    static const struct totals zero;
    assert_ptr_equal(get(1, 5, 16), record);
    assert_memory_equal(&record->active, &zero, sizeof zero);
    for (unsigned stage = 0; stage < STAGES; stage++)
        assert_memory_equal(&record->future[stage], &zero, sizeof zero);
    assert_int_equal(record->dirty_stages, 0);
    assert_int_equal(record->n_live, 1);
}

static void every_record_is_walked_once_also_over_many_chunks(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=10", NULL);
    assert_int_equal(n_walked(), 0);
    for (unsigned n = 1; n <= 2000; n++) {
        records_future(get(n, 1, 16), 0)->alloc_objects++;
        records_fold(0);
        if (n % 128 < 2)
            assert_int_equal(n_walked(), n);
    }
    assert_int_equal(n_walked(), 2000);
}

static void a_spent_ledger_refuses_new_records_and_keeps_the_old(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", NULL);
    struct record *record = get(1, 1, 16);
    while (region_take(REGION_LEDGER, 16))
        continue;
    uint64_t size = 17;
    while (get(1, 1, size)) /* what is left of the chunk */
        size++;
    uint32_t n_records = records_count();
    assert_null(get(1, 1, size));
    assert_int_equal(records_count(), n_records);
    assert_ptr_equal(get(1, 1, 16), record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stack_set_and_size_make_a_record),
        cmocka_unit_test(without_a_place_the_total_is_another_record_under_other),
        cmocka_unit_test(a_record_of_a_place_stays_when_nothing_of_it_lives),
        cmocka_unit_test(a_record_without_a_place_goes_with_its_last_sample_and_so_does_its_set),
        cmocka_unit_test(events_that_gather_keep_a_record_until_they_are_folded),
        cmocka_unit_test(folding_adds_one_stage_to_what_is_published),
        cmocka_unit_test(a_record_used_again_begins_at_zero),
        cmocka_unit_test(every_record_is_walked_once_also_over_many_chunks),
        cmocka_unit_test(a_spent_ledger_refuses_new_records_and_keeps_the_old),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
