/* SPDX-License-Identifier: MIT
 * The exact cut under load: threads hand N tokens around and make a new object for a token before
 * they free its old one, while another thread publishes all the time. So at every instant there
 * are N objects, and one more for each thread in the middle of a move; a cut that shows fewer has a
 * free without what came before it, one that shows more has missed a free. Labels come and go
 * meanwhile. */
#include "ledger_fixture.h"

#include <pthread.h>

enum { N_THREADS = 3, N_TOKENS = 40, N_REQUESTS = 16, CHANGE_BYTES = 48 };

#ifdef __SANITIZE_THREAD__ /* ten times slower */
enum { N_CUTS = 400 };
#else
enum { N_CUTS = 2000 };
#endif

static uint64_t tokens[N_TOKENS]; /* atomic: the address of its object; 0: a thread has it */
static bool is_stopping;          /* atomic, relaxed */
static uint64_t n_moves, n_failed; /* atomic, relaxed: read after the join */
static struct label_bytes requests[N_REQUESTS];

struct mover {
    pthread_t thread;
    uint64_t next_address; /* nobody else's, never used before */
    uint64_t seed;
    bool is_replacing; /* as realloc does, old for new at one instant */
};

static void expect(bool is_true)
{
    if (!is_true)
        __atomic_fetch_add(&n_failed, 1, __ATOMIC_RELAXED);
}

static void assist_if_due(uint64_t address, uint32_t n_events)
{
    if (n_events > SWEEP_AT)
        cycle_assist(address);
}

static struct special *new_object(struct mover *mover)
{
    uint64_t random = next_random(&mover->seed);
    mover->next_address += CHANGE_BYTES;
    struct special *special = enter_sample(random % 5, &requests[(random >> 8) % N_REQUESTS],
                                           mover->next_address, (random >> 16) % 100);
    expect(special != NULL);
    return special;
}

static void move(struct mover *mover, uint64_t old)
{
    uint32_t n_events;
    struct special *born = new_object(mover);
    expect(specials_insert(born, &n_events));
    assist_if_due(mover->next_address, n_events);
    expect(specials_free((void *)old, &n_events));
    assist_if_due(old, n_events);
}

static void replace(struct mover *mover, uint64_t old)
{
    uint32_t n_events;
    struct special *ended = specials_detach((void *)old);
    expect(ended != NULL);
    if (mover->seed % 8 == 0) { /* the real realloc has failed */
        specials_reattach(ended);
        mover->next_address = old;
        next_random(&mover->seed);
        return;
    }
    expect(specials_replace(ended, new_object(mover), &n_events));
    assist_if_due(mover->next_address, n_events);
}

static void *move_tokens(void *argument)
{
    struct mover *mover = argument;
    while (!__atomic_load_n(&is_stopping, __ATOMIC_RELAXED)) {
        uint64_t *token = &tokens[next_random(&mover->seed) % N_TOKENS];
        uint64_t fresh = mover->next_address;
        /* Acquire-release, the program's own hand-over of a pointer: pairs with itself. */
        uint64_t old = __atomic_exchange_n(token, 0, __ATOMIC_ACQ_REL);
        if (!old)
            continue;
        if (mover->is_replacing)
            replace(mover, old);
        else
            move(mover, old);
        __atomic_store_n(token, mover->next_address, __ATOMIC_RELEASE);
        if (mover->next_address == old)
            mover->next_address = fresh; /* it was put back */
        __atomic_fetch_add(&n_moves, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int64_t publish_and_count(void)
{
    int64_t n_objects = 0;
    uint64_t cursor = 0;
    cycle_publish();
    for (struct record *record; (record = records_next(&cursor)) != NULL;) {
        assert_true(record->active.inuse_objects >= 0 && record->active.inuse_bytes >= 0);
        assert_true(record->active.alloc_objects >= 0 && record->active.alloc_bytes >= 0);
        n_objects += record->active.inuse_objects;
    }
    assert_int_equal(n_objects & ((1 << LG_OBJECT_UNIT) - 1), 0);
    return n_objects >> LG_OBJECT_UNIT;
}

static void make_tokens(struct mover *mover)
{
    for (int i = 0; i < N_TOKENS; i++) {
        uint32_t n_events;
        assert_true(specials_insert(new_object(mover), &n_events));
        tokens[i] = mover->next_address;
    }
}

static void start(struct mover *movers, bool is_replacing)
{
    for (uint64_t i = 0; i < N_REQUESTS; i++)
        requests[i] = request_labels(i);
    for (uint64_t i = 0; i <= N_THREADS; i++)
        movers[i] = (struct mover){.next_address = (i + 1) << 40 | 16,
                                   .seed = i,
                                   .is_replacing = is_replacing};
    make_tokens(&movers[N_THREADS]);
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&movers[i].thread, NULL, move_tokens, &movers[i]), 0);
}

static void stop(struct mover *movers)
{
    __atomic_store_n(&is_stopping, true, __ATOMIC_RELAXED);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(movers[i].thread, NULL);
}

static void free_the_tokens(void)
{
    uint32_t n_events;
    for (int i = 0; i < N_TOKENS; i++)
        assert_true(specials_free((void *)tokens[i], &n_events));
    assert_int_equal(publish_and_count(), 0);
}

static void check_every_cut(bool is_replacing, int64_t most)
{
    struct mover movers[N_THREADS + 1];
    ledger_open("LABELPROF_SAMPLE_BYTES=1", "LABELPROF_MAX_LABEL_SETS=4", NULL);
    start(movers, is_replacing);
    for (int i = 0; i < N_CUTS; i++) {
        int64_t n_objects = publish_and_count();
        if (n_objects < N_TOKENS || n_objects > most)
            fail_msg("cut %d has %lld objects", i, (long long)n_objects);
    }
    stop(movers);
    assert_int_equal(n_failed, 0);
    assert_true(n_moves > N_CUTS / 10); /* or nothing was tried */
    assert_int_equal(publish_and_count(), N_TOKENS);
    if (!is_replacing)
        assert_int_equal(published_totals().alloc_objects >> LG_OBJECT_UNIT, N_TOKENS + n_moves);
    assert_int_equal(book_counts().refused, 0);
    assert_int_equal(book_counts().implied_frees, 0);
    free_the_tokens();
    publish_and_count();
    assert_int_equal(sets_live_count(), 3 + 1); /* the fourth place is to be earned */
}

static void every_cut_has_each_token_once_or_twice(void **state)
{
    (void)state;
    check_every_cut(false, N_TOKENS + N_THREADS);
}

static void every_cut_of_replacements_has_each_token_exactly_once(void **state)
{
    (void)state;
    check_every_cut(true, N_TOKENS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_has_each_token_once_or_twice),
        cmocka_unit_test(every_cut_of_replacements_has_each_token_exactly_once),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
