/* SPDX-License-Identifier: MIT
 * Private memory, pools and locks; what of them a child of fork finds. */
#include "ledger_fixture.h"

#include <pthread.h>

#include "base/lock.h"
#include "base/pool.h"

enum { MIB = 1 << 20 };

static void fixed_places_come_before_taken_ones_and_are_zero(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    unsigned char *a = region_fix(REGION_LEDGER, 100), *b = region_fix(REGION_LEDGER, 1);
    unsigned char *taken = region_take(REGION_LEDGER, 1);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    assert_true(a + 100 <= b && b + 1 <= taken);
    for (int i = 0; i < 100; i++)
        assert_int_equal(a[i], 0);
}

static void taken_bytes_are_zero_aligned_and_nobody_elses(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    unsigned char *before = NULL;
    for (size_t bytes = 1; bytes < 300; bytes++) {
        unsigned char *at = region_take(REGION_KEEP, bytes);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 16, 0);
        assert_true(at >= before);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(at[i], 0);
        memset(at, 0xFF, bytes);
        before = at + bytes;
    }
}

static void a_spent_region_gives_null_and_stays_as_it_is(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    assert_int_equal(region_size_bytes(REGION_LEDGER), MIB);
    assert_null(region_take(REGION_LEDGER, MIB)); /* the region's own head is in it too */
    assert_null(region_take(REGION_LEDGER, SIZE_MAX));
    assert_null(region_take(REGION_LEDGER, SIZE_MAX - 15));
    assert_null(region_fix(REGION_LEDGER, MIB));
    size_t n_taken = 0;
    while (region_take(REGION_LEDGER, 4096))
        n_taken++;
    assert_int_equal(n_taken, MIB / 4096 - 1);
    size_t used = region_used_bytes(REGION_LEDGER);
    assert_null(region_take(REGION_LEDGER, 4096));
    assert_int_equal(region_used_bytes(REGION_LEDGER), used);
    assert_true(used <= MIB);
    assert_non_null(region_take(REGION_KEEP, 4096)); /* the other one has its own */
}

static void references_name_objects_of_the_ledger(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    assert_null(region_at(0));
    assert_int_equal(region_ref_of(NULL), 0);
    for (int i = 0; i < 100; i++) {
        void *object = region_take(REGION_LEDGER, 48);
        assert_int_not_equal(region_ref_of(object), 0);
        assert_ptr_equal(region_at(region_ref_of(object)), object);
    }
}

static void references_reach_the_end_of_the_largest_ledger(void **state)
{
    (void)state;
    const size_t largest = (size_t)64 << 30;
    assert_true(region_open(largest, MIB));
    unsigned char *first = region_take(REGION_LEDGER, 16);
    unsigned char *last = first + largest - 64 - 16;
    assert_ptr_equal(region_at(region_ref_of(last)), last);
}

static void a_pool_gives_back_what_was_put_into_it(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    struct pool *pool = region_fix(REGION_LEDGER, sizeof *pool);
    void *a = pool_get(pool, REGION_LEDGER, 32), *b = pool_get(pool, REGION_LEDGER, 32);
    assert_ptr_not_equal(a, b);
    pool_put(pool, a);
    pool_put(pool, b);
    size_t used = region_used_bytes(REGION_LEDGER);
    assert_ptr_equal(pool_get(pool, REGION_LEDGER, 32), b);
    assert_ptr_equal(pool_get(pool, REGION_LEDGER, 32), a);
    assert_int_equal(region_used_bytes(REGION_LEDGER), used);
    void *c = pool_get(pool, REGION_LEDGER, 32);
    assert_true(c != a && c != b);
}

static void an_empty_pool_of_a_spent_region_gives_null_until_a_put(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    struct pool *pool = region_fix(REGION_LEDGER, sizeof *pool);
    void *block = NULL;
    for (void *next; (next = pool_get(pool, REGION_LEDGER, 4096)) != NULL;)
        block = next;
    pool_put(pool, block);
    assert_ptr_equal(pool_get(pool, REGION_LEDGER, 4096), block);
    assert_null(pool_get(pool, REGION_LEDGER, 4096));
}

/* ---- locks ---- */

enum { N_LOCKERS = 4, N_TURNS = 20000 };
static struct lock lock;
static uint64_t n_turns; /* under the lock */

static void *take_turns(void *unused)
{
    (void)unused;
    for (int i = 0; i < N_TURNS; i++) {
        lock_take(&lock);
        n_turns++;
        lock_drop(&lock);
    }
    return NULL;
}

static void a_lock_lets_one_thread_in_at_a_time(void **state)
{
    (void)state;
    pthread_t threads[N_LOCKERS];
    for (int i = 0; i < N_LOCKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (int i = 0; i < N_LOCKERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(n_turns, N_LOCKERS * N_TURNS);
    assert_true(lock_try(&lock));
    assert_false(lock_try(&lock));
    lock_drop(&lock);
    assert_int_equal(lock.state, 0);
}

/* ---- fork ---- */

static const struct label_bytes no_labels;
static uint32_t *in_keep, *in_ledger;

static bool child_has_keep_and_no_ledger(void)
{
    return *in_keep == 4711 && *in_ledger == 0 && region_used_bytes(REGION_LEDGER) == 0;
}

static void a_child_of_fork_keeps_one_region_and_finds_the_other_zero(void **state)
{
    (void)state;
    assert_true(region_open(MIB, MIB));
    in_keep = region_take(REGION_KEEP, sizeof *in_keep);
    in_ledger = region_take(REGION_LEDGER, sizeof *in_ledger);
    *in_keep = *in_ledger = 4711;
    assert_true_in_a_fork(child_has_keep_and_no_ledger);
    assert_int_equal(*in_ledger, 4711);
}

static bool profile_anew(void)
{
    uint32_t n_events;
    specials_reset_filter();
    if (records_count() || sets_live_count() || stacks_count() || cycle_number() ||
        book_counts().samples || specials_free((void *)0x5008, &n_events))
        return false;
    struct special *special = enter_sample(1, &no_labels, 0x7008, 10);
    if (!special || !specials_insert(special, &n_events))
        return false;
    cycle_publish();
    return published_totals().inuse_bytes == 10 << LG_BYTE_UNIT && filter_count() == 1 &&
           specials_free((void *)0x7008, &n_events);
}

static void a_child_of_fork_begins_with_an_empty_book(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events;
    for (uint64_t i = 0; i < 100; i++) {
        struct label_bytes labels = request_labels(i);
        assert_true(specials_insert(enter_sample(i, &labels, 0x5008 + i * 16, 10), &n_events));
    }
    cycle_publish();
    assert_true_in_a_fork(profile_anew);
    assert_int_equal(published_totals().inuse_objects, 100 << LG_OBJECT_UNIT);
}

static bool labels_are_as_before(void)
{
    unsigned char bytes[LABEL_SET_BYTES_MAX];
    size_t n_bytes = gather_labels(bytes);
    if (strcmp(labels_text(bytes, n_bytes), "*request=42,service=shop") != 0)
        return false;
    return current_set_text("more", "1", 1) == 0 && current_capture() != NULL;
}

static void a_child_of_fork_keeps_its_threads_labels(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=service=shop", "LABELPROF_THREAD_LABELS=none", NULL);
    assert_int_equal(current_set_text("request", "42", 2), 0);
    assert_true_in_a_fork(labels_are_as_before);
    assert_true_in_a_fork(labels_are_as_before);
}

/* A thread that holds every lock it can while the process forks. */
static uint32_t stage; /* atomic: 1 it holds them, 2 it may let go */

static void *hold_locks(void *unused)
{
    (void)unused;
    book_lock();
    for (unsigned i = 0; i < STRIPES; i++)
        lock_take(&specials_stripe(i)->lock);
    __atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 2)
        usleep(1000);
    for (unsigned i = 0; i < STRIPES; i++)
        lock_drop(&specials_stripe(i)->lock);
    book_unlock();
    return NULL;
}

static void locks_held_by_another_thread_at_fork_are_free_in_the_child(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    pthread_t holder;
    assert_int_equal(pthread_create(&holder, NULL, hold_locks, NULL), 0);
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 1)
        usleep(1000);
    assert_true_in_a_fork(profile_anew);
    __atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
    pthread_join(holder, NULL);
}

/* A thread that is in and out of the pools of labels all the time. */
static void *capture_for_ever(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) != 2) {
        current_set_text("key", "value", 5);
        current_release(current_capture());
    }
    return NULL;
}

static bool labels_can_be_captured(void)
{
    for (int i = 0; i < 100; i++) {
        struct label_capture *capture = current_capture();
        if (!capture || current_attach(capture) != 0)
            return false;
        current_release(capture);
    }
    return true;
}

static void forks_amid_changes_of_labels_leave_usable_labels(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    pthread_t other;
    assert_int_equal(current_set_text("key", "mine", 4), 0);
    assert_int_equal(pthread_create(&other, NULL, capture_for_ever, NULL), 0);
    for (int i = 0; i < 50; i++)
        assert_true_in_a_fork(labels_can_be_captured);
    __atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_places_come_before_taken_ones_and_are_zero),
        cmocka_unit_test(taken_bytes_are_zero_aligned_and_nobody_elses),
        cmocka_unit_test(a_spent_region_gives_null_and_stays_as_it_is),
        cmocka_unit_test(references_name_objects_of_the_ledger),
        cmocka_unit_test(references_reach_the_end_of_the_largest_ledger),
        cmocka_unit_test(a_pool_gives_back_what_was_put_into_it),
        cmocka_unit_test(an_empty_pool_of_a_spent_region_gives_null_until_a_put),
        cmocka_unit_test(a_lock_lets_one_thread_in_at_a_time),
        cmocka_unit_test(a_child_of_fork_keeps_one_region_and_finds_the_other_zero),
        cmocka_unit_test(a_child_of_fork_begins_with_an_empty_book),
        cmocka_unit_test(a_child_of_fork_keeps_its_threads_labels),
        cmocka_unit_test(locks_held_by_another_thread_at_fork_are_free_in_the_child),
        cmocka_unit_test(forks_amid_changes_of_labels_leave_usable_labels),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
