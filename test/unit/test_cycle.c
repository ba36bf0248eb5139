/* SPDX-License-Identifier: MIT
 * The three-stage cycle against an oracle: random operations, told to the record stage and to a
 * plain model of arrays. After each publication both must say the same, to the last unit; between
 * two of them nothing that is published may change. */
#include "ledger_fixture.h"

#include "base/text.h"
#include "record/stacks.h"
#include "sample/poisson.h"

enum { N_ADDRESSES = 1500, N_STACKS = 5, N_REQUESTS = 6, N_PLACES = 3, OTHER = N_REQUESTS };

struct model_object {
    bool is_live;
    uint64_t size_bytes, stack, request;
    uint8_t lg_factor;
};

static struct model {
    struct model_object objects[N_ADDRESSES];
    struct totals totals[N_STACKS][N_REQUESTS + 1]; /* as of now */
    bool has_place[N_REQUESTS];
    unsigned n_places;
    uint64_t n_samples, n_implied_frees;
} model;

static struct totals published[N_STACKS][N_REQUESTS + 1];
static uint64_t seed;

static uint64_t choose(uint64_t n)
{
    return next_random(&seed) % n;
}

/* Half of them aligned as placed samples are. */
static uint64_t address_of(uint64_t index)
{
    return index % 2 ? 0x7f0000000000 + index * PLACED_ALIGNMENT : 0x550000000010 + index * 48;
}

/* ---- the model ---- */

static struct totals estimate_of(const struct model_object *object, int sign)
{
    double weight =
        poisson_weight(object->size_bytes, options.sample_bytes << object->lg_factor);
    int64_t objects = (int64_t)(weight * (1 << LG_OBJECT_UNIT) + 0.5);
    int64_t bytes = (int64_t)(weight * (double)object->size_bytes * (1 << LG_BYTE_UNIT) + 0.5);
    return (struct totals){objects, bytes, sign * objects, sign * bytes};
}

static void model_place(uint64_t request)
{
    if (model.has_place[request] || model.n_places == N_PLACES)
        return;
    model.has_place[request] = true;
    model.n_places++;
}

static void model_birth(uint64_t index, const struct model_object *object)
{
    struct totals estimate = estimate_of(object, 1);
    model_place(object->request);
    struct totals *live = &model.totals[object->stack][object->request];
    struct totals *total =
        model.has_place[object->request] ? live : &model.totals[object->stack][OTHER];
    live->inuse_objects += estimate.inuse_objects;
    live->inuse_bytes += estimate.inuse_bytes;
    total->alloc_objects += estimate.alloc_objects;
    total->alloc_bytes += estimate.alloc_bytes;
    model.objects[index] = *object;
    model.objects[index].is_live = true;
    model.n_samples++;
}

static void model_end(uint64_t index)
{
    struct model_object *object = &model.objects[index];
    struct totals estimate = estimate_of(object, -1);
    struct totals *live = &model.totals[object->stack][object->request];
    live->inuse_objects += estimate.inuse_objects;
    live->inuse_bytes += estimate.inuse_bytes;
    object->is_live = false;
}

/* ---- what is published, in the model's terms ---- */

static uint64_t request_of(const struct label_set *set)
{
    struct label_cursor cursor = sets_cursor(set);
    struct label_head head;
    const char *key, *value;
    uint64_t request;
    assert_true(sets_next(&cursor, &head, &key, &value)); /* "request" is the first */
    return text_to_number(value, head.value_bytes, &request) ? request : OTHER;
}

static void add_record(const struct record *record)
{
    const struct stack *stack = region_at(record->stack);
    struct totals *to = &published[stack->frames[0] - 0x1000][request_of(region_at(record->set))];
    assert_true(record->active.inuse_objects >= 0 && record->active.inuse_bytes >= 0);
    assert_true(record->active.alloc_objects >= 0 && record->active.alloc_bytes >= 0);
    to->alloc_objects += record->active.alloc_objects;
    to->alloc_bytes += record->active.alloc_bytes;
    to->inuse_objects += record->active.inuse_objects;
    to->inuse_bytes += record->active.inuse_bytes;
}

static void read_published(void)
{
    uint64_t cursor = 0;
    memset(published, 0, sizeof published);
    for (struct record *record; (record = records_next(&cursor)) != NULL;)
        if (record->active.alloc_objects | record->active.inuse_objects)
            add_record(record);
}

static void check_published_is_the_model(void)
{
    for (unsigned stack = 0; stack < N_STACKS; stack++)
        for (unsigned request = 0; request <= OTHER; request++) {
            const struct totals *is = &published[stack][request];
            const struct totals *should = &model.totals[stack][request];
            if (memcmp(is, should, sizeof *is) != 0)
                fail_msg("stack %u request %u: inuse %lld/%lld instead of %lld/%lld, "
                         "alloc %lld instead of %lld", stack, request,
                         (long long)is->inuse_objects, (long long)is->inuse_bytes,
                         (long long)should->inuse_objects, (long long)should->inuse_bytes,
                         (long long)is->alloc_objects, (long long)should->alloc_objects);
        }
}

static void check_filter(void)
{
    uint32_t n_live = 0;
    for (uint64_t index = 0; index < N_ADDRESSES; index++) {
        if (!model.objects[index].is_live)
            continue;
        n_live++;
        assert_true(filter_may_hold((void *)address_of(index)));
        assert_false(filter_is_ordinary((void *)address_of(index)));
    }
    assert_int_equal(filter_count(), n_live);
}

static void publish(void)
{
    struct totals before[N_STACKS][N_REQUESTS + 1];
    memcpy(before, published, sizeof before);
    read_published();
    assert_memory_equal(before, published, sizeof before); /* since the last publication */
    cycle_publish();
    read_published();
    check_published_is_the_model();
    check_filter();
    assert_int_equal(book_counts().samples, model.n_samples);
    assert_int_equal(book_counts().implied_frees, model.n_implied_frees);
    assert_int_equal(book_counts().refused, 0);
}

/* ---- the operations ---- */

static void assist_if_due(uint64_t index, uint32_t n_events)
{
    if (n_events > SWEEP_AT)
        cycle_assist(address_of(index));
}

static struct special *enter(uint64_t index, struct model_object *ret_object)
{
    static const uint64_t sizes[] = {0, 1, 16, 100, 1000, 33000, 5000000};
    *ret_object = (struct model_object){.size_bytes = sizes[choose(ARRAY_LENGTH(sizes))] + choose(9),
                                        .stack = choose(N_STACKS),
                                        .request = choose(N_REQUESTS),
                                        .lg_factor = (uint8_t)(choose(8) ? 0 : choose(10))};
    if (options.sample_bytes == 1)
        ret_object->lg_factor = 0;
    struct label_bytes labels = request_labels(ret_object->request);
    uint64_t frames[] = {0x1000 + ret_object->stack};
    struct book_sample sample = {frames, 1, labels.bytes, labels.n_bytes, address_of(index),
                                 ret_object->size_bytes, ret_object->lg_factor};
    struct special *special = book_enter(&sample);
    assert_non_null(special);
    return special;
}

static void do_insert(uint64_t index)
{
    struct model_object object;
    uint32_t n_events;
    assert_true(specials_insert(enter(index, &object), &n_events));
    if (model.objects[index].is_live) {
        model_end(index);
        model.n_implied_frees++;
    }
    model_birth(index, &object);
    assist_if_due(index, n_events);
}

static void do_free(uint64_t index)
{
    uint32_t n_events;
    assert_int_equal(specials_free((void *)address_of(index), &n_events),
                     model.objects[index].is_live);
    if (model.objects[index].is_live)
        model_end(index);
    assist_if_due(index, n_events);
}

/* Detached, a sample may be swept and published before it is ended, replaced or put back. */
static void do_realloc(uint64_t index)
{
    struct special *special = specials_detach((void *)address_of(index));
    assert_int_equal(special != NULL, model.objects[index].is_live);
    if (!special)
        return;
    model.objects[index].is_live = false; /* to the filter */
    if (choose(2))
        cycle_assist(address_of(index));
    if (choose(16) == 0)
        publish();
    uint32_t n_events;
    struct model_object object;
    uint64_t outcome = choose(4), to = choose(2) ? index : choose(N_ADDRESSES);
    if (outcome == 0) {
        specials_reattach(special);
        model.objects[index].is_live = true;
        return;
    }
    struct special *born = outcome == 1 ? NULL : enter(to, &object);
    if (born)
        assert_true(specials_replace(special, born, &n_events));
    else
        specials_end(special, &n_events);
    model_end(index);
    if (!born)
        return;
    if (model.objects[to].is_live) {
        model_end(to);
        model.n_implied_frees++;
    }
    model_birth(to, &object);
    assist_if_due(to, n_events);
}

static void do_anything(void)
{
    uint64_t index = choose(N_ADDRESSES), what = choose(1000);
    if (what < 400)
        do_insert(index);
    else if (what < 800)
        do_free(index);
    else if (what < 980)
        do_realloc(index);
    else if (what < 995)
        cycle_assist(address_of(index));
    else
        publish();
}

static void empty_and_check_what_remains(void)
{
    for (uint64_t index = 0; index < N_ADDRESSES; index++)
        do_free(index);
    publish();
    cycle_publish();
    cycle_publish();
    for (unsigned stage = 0; stage < STAGES; stage++)
        assert_true(records_stage_is_empty(stage));
    uint64_t cursor = 0;
    for (struct record *record; (record = records_next(&cursor)) != NULL;) {
        assert_int_equal(record->active.inuse_objects, 0);
        assert_int_equal(record->active.inuse_bytes, 0);
    }
    assert_int_equal(sets_live_count(), N_PLACES + 1);
    for (size_t i = 0; i < ARRAY_LENGTH(filter.bits); i++)
        assert_int_equal(filter.bits[i], 0);
}

static void run_against_the_model(const char *sample_bytes, uint64_t from_seed)
{
    char variable[64];
    snprintf(variable, sizeof variable, "LABELPROF_SAMPLE_BYTES=%s", sample_bytes);
    ledger_open(variable, "LABELPROF_MAX_LABEL_SETS=3", NULL);
    assert_int_equal(options.max_label_sets, N_PLACES);
    seed = from_seed;
    for (int i = 0; i < 20000; i++)
        do_anything();
    empty_and_check_what_remains();
    size_t used = region_used_bytes(REGION_LEDGER);
    for (int i = 0; i < 20000; i++)
        do_anything();
    empty_and_check_what_remains();
    /* What came free served again, but for a few more samples at the worst moment. */
    assert_true(region_used_bytes(REGION_LEDGER) <= used + used / 16);
}

static void each_publication_is_the_model_at_an_interval_of_one(void **state)
{
    (void)state;
    run_against_the_model("1", 20240301);
}

static void each_publication_is_the_model_with_weights(void **state)
{
    (void)state;
    run_against_the_model("512k", 20240302);
}

static void each_publication_is_the_model_with_the_largest_weights(void **state)
{
    (void)state;
    run_against_the_model("1g", 20240303);
}

/* ---- single steps ---- */

static const struct label_bytes no_labels;

static void insert(uint64_t address, uint64_t size_bytes)
{
    uint32_t n_events;
    assert_true(specials_insert(enter_sample(1, &no_labels, address, size_bytes), &n_events));
}

static int64_t inuse_bytes(void)
{
    return published_totals().inuse_bytes >> LG_BYTE_UNIT;
}

static void nothing_shows_before_it_is_published(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events;
    insert(0x5010, 10);
    assert_int_equal(inuse_bytes(), 0);
    cycle_assist(0x5010);
    assert_int_equal(inuse_bytes(), 0);
    cycle_publish();
    assert_int_equal(inuse_bytes(), 10);
    assert_true(specials_free((void *)0x5010, &n_events));
    cycle_assist(0x5010);
    assert_int_equal(inuse_bytes(), 10);
    cycle_publish();
    assert_int_equal(inuse_bytes(), 0);
    assert_int_equal(published_totals().alloc_bytes, 10 << LG_BYTE_UNIT);
}

static void each_publication_is_a_cycle_and_stages_take_turns(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    for (uint64_t cycle = 0; cycle < 10; cycle++) {
        assert_int_equal(cycle_number(), cycle);
        assert_int_equal(cycle_stage(), cycle % STAGES);
        insert(0x5010 + cycle * 16, 10);
        cycle_publish();
        assert_int_equal(inuse_bytes(), 10 * (int64_t)(cycle + 1));
    }
}

static void an_assist_leaves_a_stripes_lists_empty(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events = 0;
    insert(0x5010, 10);
    struct stripe *stripe = specials_stripe(filter_stripe(filter_hash((void *)0x5010)));
    assert_int_equal(stripe->n_events, 1);
    assert_true(specials_free((void *)0x5010, &n_events));
    assert_int_equal(n_events, 2);
    cycle_assist(0x5010);
    assert_int_equal(stripe->n_events, 0);
    assert_int_equal(stripe->born, 0);
    assert_int_equal(stripe->freed, 0);
    cycle_publish();
    assert_int_equal(inuse_bytes(), 0);
    assert_int_equal(published_totals().alloc_objects, 1 << LG_OBJECT_UNIT);
}

static void an_object_of_no_bytes_counts_as_an_object(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    insert(0x5010, 0);
    cycle_publish();
    assert_int_equal(published_totals().inuse_objects, 1 << LG_OBJECT_UNIT);
    assert_int_equal(published_totals().inuse_bytes, 0);
}

static void the_largest_object_there_can_be_fits_the_totals(void **state)
{
    (void)state;
    ledger_open("LABELPROF_SAMPLE_BYTES=1", NULL);
    uint32_t n_events;
    const uint64_t largest = (UINT64_C(1) << 47) - 1; /* the address space */
    for (uint64_t i = 0; i < 100; i++)
        insert(0x5010 + 16 * i, largest);
    cycle_publish();
    assert_int_equal(published_totals().inuse_bytes, (int64_t)(100 * largest) << LG_BYTE_UNIT);
    for (uint64_t i = 0; i < 100; i++)
        assert_true(specials_free((void *)(0x5010 + 16 * i), &n_events));
    cycle_publish();
    assert_int_equal(inuse_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_publication_is_the_model_at_an_interval_of_one),
        cmocka_unit_test(each_publication_is_the_model_with_weights),
        cmocka_unit_test(each_publication_is_the_model_with_the_largest_weights),
        cmocka_unit_test(nothing_shows_before_it_is_published),
        cmocka_unit_test(each_publication_is_a_cycle_and_stages_take_turns),
        cmocka_unit_test(an_assist_leaves_a_stripes_lists_empty),
        cmocka_unit_test(an_object_of_no_bytes_counts_as_an_object),
        cmocka_unit_test(the_largest_object_there_can_be_fits_the_totals),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
