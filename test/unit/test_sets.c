/* SPDX-License-Identifier: MIT
 * Label sets: interned, with a place or without, forgotten with their last object. */
#include "ledger_fixture.h"

static struct label_set *get(const struct label_bytes *labels)
{
    return sets_get(labels->bytes, labels->n_bytes);
}

static struct label_set *get_request(uint64_t request)
{
    struct label_bytes labels = request_labels(request);
    return get(&labels);
}

static struct label_bytes one_label(const char *key, const char *value, bool is_variable)
{
    struct label_bytes labels = {.n_bytes = 0};
    add_label(&labels, key, value, is_variable);
    return labels;
}

static struct label_set *get_thread(uint64_t thread)
{
    char name[24];
    snprintf(name, sizeof name, "worker-%llu", (unsigned long long)thread);
    struct label_bytes labels = one_label("thread_name", name, false);
    return get(&labels);
}

static bool has_place(const struct label_set *set)
{
    return set->other == 0;
}

static void the_same_bytes_are_one_set(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=100", NULL);
    struct label_set *set = get_request(1);
    assert_ptr_equal(get_request(1), set);
    assert_ptr_not_equal(get_request(2), set);
    assert_int_equal(sets_live_count(), 2);
    assert_string_equal(set_text(set), "*request=1,service=shop");
}

static void sets_that_differ_in_kind_only_are_two(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=100", NULL);
    struct label_bytes a = one_label("k", "v", true), b = one_label("k", "v", false);
    struct label_bytes c = one_label("kv", "", true);
    assert_ptr_not_equal(get(&a), get(&b));
    assert_ptr_not_equal(get(&a), get(&c));
}

static void the_first_sets_have_places_and_stay(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=3", NULL);
    struct label_set *sets[3];
    for (uint64_t i = 0; i < 3; i++) {
        sets[i] = get_request(i);
        assert_true(has_place(sets[i]));
        assert_ptr_equal(sets_total(sets[i]), sets[i]);
        sets_put(sets[i]);
    }
    assert_int_equal(sets_live_count(), 3);
    assert_false(sets_did_overflow());
    for (uint64_t i = 0; i < 3; i++)
        assert_ptr_equal(get_request(i), sets[i]);
}

static void no_labels_at_all_need_no_place(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct label_bytes none = {.n_bytes = 0};
    assert_true(has_place(get(&none)));
    assert_true(has_place(get_request(1)));
    assert_false(has_place(get_request(2)));
    assert_true(has_place(get(&none)));
}

static void a_set_without_a_place_books_under_other_for_its_variable_keys(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get_request(1);
    struct label_set *set = get_request(2);
    assert_false(has_place(set));
    assert_string_equal(set_text(set), "*request=2,service=shop");
    assert_string_equal(set_text(sets_total(set)), "*request=(other),service=shop");
    assert_true(has_place(sets_total(set)));
    assert_ptr_equal(sets_total(get_request(3)), sets_total(set));
    assert_true(sets_did_overflow());
}

static void a_number_that_varies_becomes_other_too(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get_request(1);
    struct label_bytes labels = one_label("request", "ms", true);
    struct label_head head;
    memcpy(&head, labels.bytes, sizeof head);
    head.kind = LABEL_NUMBER;
    head.number = 17;
    memcpy(labels.bytes, &head, sizeof head);
    assert_string_equal(set_text(sets_total(get(&labels))), "*request=(other)");
}

static void a_set_without_a_place_is_forgotten_with_its_last_reference(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    sets_put(get_request(1));
    struct label_set *set = get_request(2);
    assert_ptr_equal(get_request(2), set);
    assert_int_equal(sets_live_count(), 3); /* 1, 2 and (other) */
    sets_put(set);
    assert_int_equal(sets_live_count(), 3);
    sets_put(set);
    assert_int_equal(sets_live_count(), 2);
    assert_false(has_place(get_request(2))); /* once booked under (other), always */
}

static void a_forgotten_sets_memory_serves_the_next(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    sets_put(get_request(1));
    sets_put(get_request(2));
    size_t used = region_used_bytes(REGION_LEDGER);
    for (uint64_t i = 0; i < 10000; i++)
        sets_put(get_request(10 + i % 90));
    assert_int_equal(region_used_bytes(REGION_LEDGER), used);
    assert_int_equal(sets_live_count(), 2);
}

static void the_programs_own_other_is_the_one_of_those_without_a_place(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    get_request(1);
    struct label_bytes own = {.n_bytes = 0};
    add_label(&own, "request", "(other)", true);
    add_label(&own, "service", "shop", false);
    struct label_set *set = get(&own);
    assert_true(has_place(set));
    assert_ptr_equal(sets_total(get_request(2)), set);
    sets_put(set);
    assert_ptr_equal(sets_total(get_request(3)), set);
}

static void an_other_with_a_place_of_its_own_is_used_too(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct label_bytes own = {.n_bytes = 0};
    add_label(&own, "request", "(other)", true);
    add_label(&own, "service", "shop", false);
    struct label_set *set = get(&own);
    assert_ptr_equal(sets_total(get_request(2)), set);
    assert_int_equal(sets_live_count(), 2);
}

static void as_many_sets_again_may_be_live_and_no_more(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=4", NULL);
    struct label_set *live[7];
    for (uint64_t i = 0; i < 7; i++)
        live[i] = get_request(i);
    for (uint64_t i = 0; i < 3; i++) /* the fourth place is to be earned */
        assert_true(has_place(live[i]));
    for (uint64_t i = 3; i < 7; i++) {
        assert_false(has_place(live[i]));
        assert_ptr_not_equal(live[i], sets_total(live[i]));
    }
    struct label_set *beyond = get_request(100);
    assert_ptr_equal(beyond, sets_total(live[4]));
    assert_int_equal(sets_live_count(), 8);
    sets_put(live[5]);
    assert_string_equal(set_text(get_request(101)), "*request=101,service=shop");
    assert_string_equal(set_text(get_request(102)), "*request=(other),service=shop");
}

static void thread_names_without_end_end_in_the_last_resort(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=10", NULL);
    for (uint64_t i = 0; i < 8 + OTHER_PLACES; i++) {
        struct label_set *set = get_thread(i);
        assert_true(has_place(set)); /* nothing in it may be called (other) */
        sets_put(set);
    }
    struct label_set *set = get_thread(5000);
    assert_string_equal(set_text(sets_total(set)), "label_set=(other)");
    assert_true(has_place(sets_total(set)));
    sets_put(set);
    assert_int_equal(sets_live_count(), 8 + OTHER_PLACES + 1);
}

static void thread_names_without_end_leave_memory_as_it_is(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=10", NULL);
    for (uint64_t i = 10000; i < 20000; i++)
        sets_put(get_thread(i));
    size_t used = region_used_bytes(REGION_LEDGER);
    uint32_t n_sets = sets_live_count();
    for (uint64_t i = 20000; i < 60000; i++)
        sets_put(get_thread(i));
    assert_int_equal(region_used_bytes(REGION_LEDGER), used);
    assert_int_equal(sets_live_count(), n_sets);
}

static void keys_without_end_end_in_the_last_resort_too(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=10", NULL);
    for (int i = 0; i < 5000; i++) {
        char key[24];
        snprintf(key, sizeof key, "key%d", 10000 + i);
        struct label_bytes labels = one_label(key, "value", true);
        sets_put(get(&labels));
    }
    assert_int_equal(sets_live_count(), 8 + OTHER_PLACES + 1);
    struct label_bytes labels = one_label("key", "value", true);
    assert_string_equal(set_text(sets_total(get(&labels))), "label_set=(other)");
    labels = one_label("key", "(other)", true);
    assert_string_equal(set_text(sets_total(get(&labels))), "label_set=(other)");
}

static void the_programs_own_last_resort_is_the_one(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct label_bytes own = one_label("label_set", "(other)", false);
    struct label_set *set = get(&own);
    for (uint64_t i = 0; i < OTHER_PLACES + 10; i++)
        sets_put(get_thread(i));
    assert_ptr_equal(sets_total(get_thread(5000)), set);
}

static void the_largest_set_there_can_be_is_kept_whole(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_LABEL_SETS=1", NULL);
    static struct label_bytes labels;
    char key[LABEL_KEY_BYTES + 1], value[LABEL_VALUE_BYTES + 1];
    memset(value, 'v', LABEL_VALUE_BYTES);
    value[LABEL_VALUE_BYTES] = '\0';
    for (int i = 0; i < LABELS_MAX; i++) {
        snprintf(key, sizeof key, "%064d", i);
        add_label(&labels, key, value, true);
    }
    assert_int_equal(labels.n_bytes, LABEL_SET_BYTES_MAX);
    get_request(1);
    struct label_set *set = get(&labels);
    assert_int_equal(set->n_bytes, LABEL_SET_BYTES_MAX);
    assert_memory_equal(set->bytes, labels.bytes, labels.n_bytes);
    assert_false(has_place(set));
    const size_t other_bytes = sizeof(struct label_head) + LABEL_KEY_BYTES + strlen("(other)");
    assert_int_equal(sets_total(set)->n_bytes, LABELS_MAX * other_bytes);
}

static void a_spent_ledger_refuses_new_sets_and_keeps_the_old(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", NULL);
    struct label_set *first = get_request(1);
    while (region_take(REGION_LEDGER, 16))
        continue;
    uint32_t n_sets = sets_live_count();
    assert_null(get_request(2));
    assert_int_equal(sets_live_count(), n_sets);
    assert_ptr_equal(get_request(1), first);
}

static void a_set_whose_other_finds_no_memory_leaves_no_trace(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", "LABELPROF_MAX_LABEL_SETS=1", NULL);
    struct label_set *first = get_request(1);
    while (region_size_bytes(REGION_LEDGER) - region_used_bytes(REGION_LEDGER) >= 256)
        region_take(REGION_LEDGER, 16);
    region_take(REGION_LEDGER, region_size_bytes(REGION_LEDGER) - region_used_bytes(REGION_LEDGER) -
                                   128); /* one block of 128 bytes is left: no room for both */
    assert_null(get_request(2));
    assert_int_equal(sets_live_count(), 1);
    assert_ptr_equal(get_request(1), first);
}

/* A million requests, each with its own label, through the whole record stage. One thread: TSan,
 * which is slow here, has nothing to find and gets a tenth. */
#ifdef __SANITIZE_THREAD__
enum { N_REQUESTS = 100000 };
#else
enum { N_REQUESTS = 1000000 };
#endif
static void a_million_sets_come_and_go_in_flat_memory_with_right_totals(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_LABEL_SETS=64", NULL);
    enum { N = N_REQUESTS, WARM = 20000, A_CYCLE = 1000 };
    size_t used = 0;
    uint32_t n_sets = 0, n_records = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct label_bytes labels = request_labels(i);
        uint32_t n_events;
        uint64_t address = 0x10008 + i % 97 * 16;
        struct special *special = enter_sample(1, &labels, address, 100);
        assert_non_null(special);
        assert_true(specials_insert(special, &n_events));
        assert_true(specials_free((void *)address, &n_events));
        if (n_events > SWEEP_AT)
            cycle_assist(address);
        if (i % A_CYCLE == A_CYCLE - 1)
            cycle_publish();
        if (i == WARM - 1) {
            used = region_used_bytes(REGION_LEDGER);
            n_sets = sets_live_count();
            n_records = records_count();
        }
    }
    cycle_publish();
    cycle_publish();
    assert_int_equal(region_used_bytes(REGION_LEDGER), used);
    assert_int_equal(sets_live_count(), n_sets);
    assert_int_equal(records_count(), n_records);
    assert_int_equal(n_sets, 48 + 1); /* the places that are not to be earned, and (other) */
    struct totals totals = published_totals();
    assert_int_equal(totals.alloc_objects, (int64_t)N << LG_OBJECT_UNIT);
    assert_int_equal(totals.alloc_bytes, (int64_t)N * 100 << LG_BYTE_UNIT);
    assert_int_equal(totals.inuse_objects, 0);
    assert_int_equal(totals.inuse_bytes, 0);
    assert_int_equal(book_counts().refused, 0);
}

/* One sampled object of 100 bytes with this request, made and freed at once. */
static void serve(uint64_t request)
{
    struct label_bytes labels = request_labels(request);
    uint32_t n_events;
    struct special *special = enter_sample(1, &labels, 0x10008, 100);
    assert_non_null(special);
    assert_true(specials_insert(special, &n_events));
    assert_true(specials_free((void *)0x10008, &n_events));
    if (n_events > SWEEP_AT)
        cycle_assist(0x10008);
}

static int64_t allocated_by(const char *set)
{
    int64_t objects = 0;
    uint64_t cursor = 0;
    for (struct record *record; (record = records_next(&cursor)) != NULL;)
        if (record->active.alloc_objects && strcmp(set_text(region_at(record->set)), set) == 0)
            objects += record->active.alloc_objects >> LG_OBJECT_UNIT;
    return objects;
}

static void who_proves_to_allocate_most_earns_a_place_and_keeps_it(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_LABEL_SETS=64", NULL);
    int64_t heavy_before = 0, others_before = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        serve(1000 + i);         /* once each: nobody to remember */
        if (i > 100 && i % 4 == 0)
            serve(77777);        /* a fifth of all */
        if (i % 1000)
            continue;
        cycle_publish();
        int64_t heavy = allocated_by("*request=77777,service=shop");
        int64_t others = allocated_by("*request=(other),service=shop");
        assert_true(heavy >= heavy_before && others >= others_before);
        heavy_before = heavy, others_before = others;
    }
    cycle_publish();
    int64_t heavy = allocated_by("*request=77777,service=shop");
    assert_in_range(heavy, 4700, 4974); /* but for what came before it was proven */
    assert_int_equal(published_totals().alloc_objects >> LG_OBJECT_UNIT, 20000 + 4975 - 1);
    assert_int_equal(sets_live_count(), 48 + 1 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes_are_one_set),
        cmocka_unit_test(sets_that_differ_in_kind_only_are_two),
        cmocka_unit_test(the_first_sets_have_places_and_stay),
        cmocka_unit_test(no_labels_at_all_need_no_place),
        cmocka_unit_test(a_set_without_a_place_books_under_other_for_its_variable_keys),
        cmocka_unit_test(a_number_that_varies_becomes_other_too),
        cmocka_unit_test(a_set_without_a_place_is_forgotten_with_its_last_reference),
        cmocka_unit_test(a_forgotten_sets_memory_serves_the_next),
        cmocka_unit_test(the_programs_own_other_is_the_one_of_those_without_a_place),
        cmocka_unit_test(an_other_with_a_place_of_its_own_is_used_too),
        cmocka_unit_test(as_many_sets_again_may_be_live_and_no_more),
        cmocka_unit_test(thread_names_without_end_end_in_the_last_resort),
        cmocka_unit_test(thread_names_without_end_leave_memory_as_it_is),
        cmocka_unit_test(keys_without_end_end_in_the_last_resort_too),
        cmocka_unit_test(the_programs_own_last_resort_is_the_one),
        cmocka_unit_test(the_largest_set_there_can_be_is_kept_whole),
        cmocka_unit_test(a_spent_ledger_refuses_new_sets_and_keeps_the_old),
        cmocka_unit_test(a_set_whose_other_finds_no_memory_leaves_no_trace),
        cmocka_unit_test(who_proves_to_allocate_most_earns_a_place_and_keeps_it),
        cmocka_unit_test(a_million_sets_come_and_go_in_flat_memory_with_right_totals),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
