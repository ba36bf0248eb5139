/* SPDX-License-Identifier: MIT
 * Stacks: interned, their size labels, and what happens when there are too many. */
#include "ledger_fixture.h"

#include "record/stacks.h"

static struct stack *get(uint64_t a, uint64_t b)
{
    const uint64_t frames[] = {a, b};
    return stacks_get(frames, 2);
}

static void the_same_frames_are_one_stack(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=64m", NULL);
    struct stack *stack = get(1000, 2000);
    assert_ptr_equal(get(1000, 2000), stack);
    assert_ptr_not_equal(get(2000, 1000), stack);
    assert_ptr_not_equal(get(1000, 2001), stack);
    assert_int_equal(stacks_count(), 3);
    assert_int_equal(stack->n_frames, 2);
    assert_int_equal(stack->frames[0], 1000);
    assert_int_equal(stack->frames[1], 2000);
}

static void a_stack_is_not_its_own_beginning(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=64m", NULL);
    uint64_t frames[STACK_DEPTH_MAX];
    struct stack *stacks[STACK_DEPTH_MAX + 1];
    for (unsigned i = 0; i < STACK_DEPTH_MAX; i++)
        frames[i] = 5000 + i % 2;
    for (unsigned n = 1; n <= STACK_DEPTH_MAX; n++)
        stacks[n] = stacks_get(frames, n);
    for (unsigned n = 1; n <= STACK_DEPTH_MAX; n++) {
        assert_int_equal(stacks[n]->n_frames, n);
        assert_ptr_equal(stacks_get(frames, n), stacks[n]);
    }
    assert_int_equal(stacks_count(), STACK_DEPTH_MAX);
}

static void many_stacks_are_all_found_again(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=64m", NULL);
    enum { N = 100000 };
    static struct stack *stacks[N];
    for (uint64_t i = 0; i < N; i++)
        stacks[i] = get(i + 100, i * 3 + 7);
    for (uint64_t i = 0; i < N; i++)
        assert_ptr_equal(get(i + 100, i * 3 + 7), stacks[i]);
    assert_int_equal(stacks_count(), N);
}

/* ---- sizes ---- */

static void the_first_sizes_of_a_stack_are_shown_exactly(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=64m", NULL);
    struct stack *stack = get(1, 2);
    for (uint64_t i = 0; i < EXACT_SIZES; i++)
        assert_int_equal(stacks_size_label(stack, 1001 + i), 1001 + i);
    assert_int_equal(stacks_size_label(stack, 777), stacks_size_class(777));
    assert_int_not_equal(stacks_size_class(777), 777);
    for (uint64_t i = 0; i < EXACT_SIZES; i++)
        assert_int_equal(stacks_size_label(stack, 1001 + i), 1001 + i);
    assert_int_equal(stacks_size_label(get(1, 3), 777), 777); /* each stack has its own */
}

static void assert_class_is_narrow(uint64_t size)
{
    uint64_t class = stacks_size_class(size);
    double error = ((double)class - (double)size) / (double)size;
    if (size < 16 ? class != size : !(error < 0.063 && error > -0.063))
        fail_msg("%llu is shown as %llu", (unsigned long long)size, (unsigned long long)class);
}

static void a_class_is_within_6_3_percent_of_its_sizes(void **state)
{
    (void)state;
    for (uint64_t size = 0; size < 100000; size++)
        assert_class_is_narrow(size);
    for (unsigned lg = 16; lg < 48; lg++)
        for (int eighth = 0; eighth < 8; eighth++) {
            uint64_t edge = (UINT64_C(1) << lg) + ((uint64_t)eighth << (lg - 3));
            assert_class_is_narrow(edge - 1);
            assert_class_is_narrow(edge);
            assert_class_is_narrow(edge + 1);
        }
}

static void classes_grow_with_the_size_and_contain_themselves(void **state)
{
    (void)state;
    unsigned n_classes = 0;
    for (uint64_t size = 1; size < 1 << 20; size++) {
        uint64_t class = stacks_size_class(size), before = stacks_size_class(size - 1);
        assert_true(class >= before);
        assert_int_equal(stacks_size_class(class), class);
        n_classes += class != before;
    }
    assert_int_equal(n_classes, 15 + 16 * 8); /* 1 to 15, then 8 an octave from 2^4 to 2^20 */
}

/* ---- too many ---- */

static bool is_other_stacks(const struct stack *stack)
{
    return stack->n_frames == 1 && stack->frames[0] == FRAME_OTHER_STACKS;
}

static void beyond_half_the_ledger_new_stacks_are_other_stacks(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=2m", NULL);
    struct stack *first = get(77, 1);
    size_t before = region_used_bytes(REGION_LEDGER);
    uint64_t n = 0;
    while (!is_other_stacks(get(78, n)))
        n++;
    size_t used_by_stacks = region_used_bytes(REGION_LEDGER) - before;
    assert_true(used_by_stacks > (1 << 20) - 4096 && used_by_stacks < (1 << 20) + 4096);
    struct stack *other = get(79, 1);
    assert_true(is_other_stacks(other));
    assert_ptr_equal(get(80, 1), other);
    assert_ptr_equal(get(77, 1), first);
    assert_false(is_other_stacks(get(78, n - 1)));
    uint32_t count = stacks_count();
    for (uint64_t i = 0; i < 10000; i++)
        get(81, i);
    assert_int_equal(stacks_count(), count);
}

static void stacks_without_end_share_one_and_nothing_is_refused(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_MEMORY=8m", NULL);
    const struct label_bytes none = {.n_bytes = 0};
    enum { N = 60000 };
    uint64_t n_entered = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint32_t n_events;
        struct special *special = enter_sample(i * 16, &none, 0x100008, 10);
        if (!special)
            continue;
        n_entered++;
        assert_true(specials_insert(special, &n_events));
        assert_true(specials_free((void *)0x100008, &n_events));
        if (i % 1000 == 0)
            cycle_publish();
    }
    cycle_publish();
    assert_int_equal(published_totals().inuse_objects, 0);
    assert_int_equal(book_counts().refused, 0);
    assert_int_equal(n_entered, N);
    assert_int_equal(book_counts().samples, n_entered);
    assert_true(published_totals().alloc_objects >= (int64_t)n_entered << LG_OBJECT_UNIT);
    struct totals before = published_totals();
    uint64_t n_refused = book_counts().refused;
    for (uint64_t i = 0; i < 1000; i++) { /* a stack that is known has its place */
        uint32_t n_events;
        assert_true(specials_insert(enter_sample(0, &none, 0x100008, 10), &n_events));
        assert_true(specials_free((void *)0x100008, &n_events));
    }
    cycle_publish();
    assert_true(published_totals().alloc_objects - before.alloc_objects >=
                INT64_C(1000) << LG_OBJECT_UNIT);
    assert_int_equal(book_counts().refused, n_refused);
}

static void a_spent_ledger_gives_other_stacks_or_nothing(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", NULL);
    struct stack *first = get(1, 2);
    while (region_take(REGION_LEDGER, 16))
        continue;
    assert_null(get(1, 3));
    assert_ptr_equal(get(1, 2), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_frames_are_one_stack),
        cmocka_unit_test(a_stack_is_not_its_own_beginning),
        cmocka_unit_test(many_stacks_are_all_found_again),
        cmocka_unit_test(the_first_sizes_of_a_stack_are_shown_exactly),
        cmocka_unit_test(a_class_is_within_6_3_percent_of_its_sizes),
        cmocka_unit_test(classes_grow_with_the_size_and_contain_themselves),
        cmocka_unit_test(beyond_half_the_ledger_new_stacks_are_other_stacks),
        cmocka_unit_test(stacks_without_end_share_one_and_nothing_is_refused),
        cmocka_unit_test(a_spent_ledger_gives_other_stacks_or_nothing),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
