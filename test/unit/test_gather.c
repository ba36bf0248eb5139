/* SPDX-License-Identifier: MIT
 * A sample's labels from all sources: precedence, limits, allow-list, canonical order. */
#include "ledger_fixture.h"

#include <sys/prctl.h>

#include "base/sys.h"
#include "unwind/modules.h"
#include "unwind/walk.h"

static unsigned char gathered[LABEL_SET_BYTES_MAX];

static const char *labels(void)
{
    return labels_text(gathered, gather_labels(gathered));
}

static void set(const char *key, const char *value)
{
    assert_int_equal(current_set_text(key, value, strlen(value)), 0);
}

static void name_thread(const char *name)
{
    prctl(PR_SET_NAME, name);
    current_name_is(name);
}

static void the_same_labels_are_the_same_bytes_in_whatever_order_they_were_set(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=zone=z,app=x", "LABELPROF_THREAD_LABELS=none", NULL);
    static unsigned char before[LABEL_SET_BYTES_MAX];
    const char *const keys[] = {"b", "a", "ab", "aa", "B", "b.c", "\xC3\xA9", "abc", "~"};
    enum { N = ARRAY_LENGTH(keys) };
    size_t n_before = 0;
    for (size_t first = 0; first < N; first++) {
        current_attach(NULL);
        for (size_t i = 0; i < N; i++)
            set(keys[(first + i * 2) % N], keys[(first + i * 2) % N]);
        size_t n_bytes = gather_labels(gathered);
        if (first)
            assert_int_equal(n_bytes, n_before);
        if (first)
            assert_memory_equal(gathered, before, n_bytes);
        memcpy(before, gathered, n_before = n_bytes);
    }
    assert_string_equal(labels(), "*B=B,*a=a,*aa=aa,*ab=ab,*abc=abc,app=x,*b=b,*b.c=b.c,zone=z,"
                                  "*~=~,*\xC3\xA9=\xC3\xA9");
}

static void the_api_outranks_the_thread_and_the_thread_the_process(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=service=process,thread_name=process,zone=process", NULL);
    name_thread("worker");
    assert_string_equal(labels(), "service=process,thread_name=worker,zone=process");
    set("service", "api");
    assert_string_equal(labels(), "*service=api,thread_name=worker,zone=process");
    set("thread_name", "api");
    assert_string_equal(labels(), "*service=api,*thread_name=api,zone=process");
    current_set_number("zone", 7, "km");
    assert_string_equal(labels(), "*service=api,*thread_name=api,*zone=7km");
    current_attach(NULL);
    assert_string_equal(labels(), "service=process,thread_name=worker,zone=process");
}

static void beyond_32_labels_the_lowest_give_way(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=p1=1,p2=2", NULL);
    name_thread("worker");
    for (int i = 0; i < 30; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%02d", i);
        set(key, "v");
    }
    const char *text = labels();
    assert_non_null(strstr(text, "p1=1,thread_name=worker"));
    assert_null(strstr(text, "p2"));
    set("k30", "v");
    text = labels();
    assert_non_null(strstr(text, "*k30=v,thread_name=worker"));
    assert_null(strstr(text, "p1"));
    set("k31", "v");
    text = labels();
    assert_non_null(strstr(text, "*k31=v"));
    assert_null(strstr(text, "thread_name"));
}

static void trace_and_span_ids_are_left_out_unless_asked_for(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=span_id=9", "LABELPROF_THREAD_LABELS=none", NULL);
    set("trace_id", "1");
    set("trace_id2", "2");
    set("a", "3");
    assert_string_equal(labels(), "*a=3,*trace_id2=2");
    strcpy(options.label_keys, "trace_id,span_id");
    assert_string_equal(labels(), "span_id=9,*trace_id=1");
}

static void the_list_of_keys_holds_for_texts_of_every_source_and_not_for_numbers(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=service=shop,zone=z", "LABELPROF_LABEL_KEYS=a,zone",
                "LABELPROF_THREAD_LABELS=name,id", NULL);
    set("a", "1");
    set("b", "2");
    current_set_number("n", 3, "s");
    thread_self.block->tid = 17;
    assert_string_equal(labels(), "*a=1,*n=3s,thread_id=17,zone=z");
}

static void without_the_api_as_a_source_its_labels_are_left_out(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=zone=z", "LABELPROF_THREAD_LABELS=none",
                "LABELPROF_LABEL_SOURCES=none", NULL);
    set("a", "1");
    set("zone", "api");
    assert_string_equal(labels(), "zone=z");
}

static void a_later_process_label_replaces_an_earlier_one(void **state)
{
    (void)state;
    ledger_open("LABELPROF_LABELS=a=1,b=1,a=2,b=,c=,%61=3", "LABELPROF_THREAD_LABELS=none", NULL);
    assert_string_equal(labels(), "a=3");
}

static void all_32_process_labels_are_kept(void **state)
{
    (void)state;
    char text[512] = "LABELPROF_LABELS=";
    for (int i = 0; i < LABELS_MAX; i++)
        sprintf(text + strlen(text), "k%d=v,", i);
    ledger_open(text, "LABELPROF_THREAD_LABELS=none", NULL);
    struct label_cursor cursor = {gathered, gathered + gather_labels(gathered)};
    struct label_head head;
    const char *key, *value;
    int n = 0;
    while (sets_next(&cursor, &head, &key, &value))
        n++;
    assert_int_equal(n, LABELS_MAX);
}

static void a_thread_is_known_by_its_name_its_id_and_its_start(void **state)
{
    (void)state;
    ledger_open("LABELPROF_THREAD_LABELS=name,start,id", NULL);
    assert_true(unwind_open());
    name_thread("worker");
    assert_non_null(current_block());
    char expected[100];
    snprintf(expected, sizeof expected, "thread_id=%d,thread_name=worker", sys_gettid());
    assert_string_equal(labels(), expected); /* no start: this thread was not started by us */
    thread_self.block->start_routine = (uintptr_t)set;
    struct label_cursor cursor = {gathered, gathered + gather_labels(gathered)};
    struct label_head head;
    const char *key, *value;
    for (int i = 0; i < 3; i++)
        assert_true(sets_next(&cursor, &head, &key, &value));
    assert_int_equal(head.kind, LABEL_SYMBOL);
    assert_memory_equal(key, "thread_start", 12);
    assert_int_equal(FRAME_ADDRESS((uint64_t)head.number), (uintptr_t)set);
    const struct module *module = modules_get(FRAME_MODULE((uint64_t)head.number));
    assert_true(module->start <= (uintptr_t)set && (uintptr_t)set < module->limit);
}

static void a_new_name_shows_from_then_on(void **state)
{
    (void)state;
    ledger_open("LABELPROF_CYCLE_MS=1000", NULL);
    name_thread("one");
    assert_string_equal(labels(), "thread_name=one");
    name_thread("two");
    assert_string_equal(labels(), "thread_name=two");
    prctl(PR_SET_NAME, "three"); /* by another thread, which tells */
    current_names_changed();
    assert_string_equal(labels(), "thread_name=three");
    name_thread("");
    assert_string_equal(labels(), "");
}

static void the_largest_labels_fill_the_buffer_and_no_more(void **state)
{
    (void)state;
    ledger_open("LABELPROF_CYCLE_MS=1000", NULL);
    char key[LABEL_KEY_BYTES + 1], value[300];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < LABELS_MAX; i++) {
        snprintf(key, sizeof key, "%064d", i);
        set(key, value);
    }
    unsigned char *exact = malloc(LABEL_SET_BYTES_MAX); /* a sanitizer sees one byte more */
    assert_int_equal(gather_labels(exact), LABEL_SET_BYTES_MAX);
    free(exact);
}

static void without_memory_for_a_block_there_are_no_labels(void **state)
{
    (void)state;
    ledger_open("LABELPROF_CYCLE_MS=1000", NULL);
    while (region_take(REGION_KEEP, 16))
        continue;
    assert_int_equal(gather_labels(gathered), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_labels_are_the_same_bytes_in_whatever_order_they_were_set),
        cmocka_unit_test(the_api_outranks_the_thread_and_the_thread_the_process),
        cmocka_unit_test(beyond_32_labels_the_lowest_give_way),
        cmocka_unit_test(trace_and_span_ids_are_left_out_unless_asked_for),
        cmocka_unit_test(the_list_of_keys_holds_for_texts_of_every_source_and_not_for_numbers),
        cmocka_unit_test(without_the_api_as_a_source_its_labels_are_left_out),
        cmocka_unit_test(a_later_process_label_replaces_an_earlier_one),
        cmocka_unit_test(all_32_process_labels_are_kept),
        cmocka_unit_test(a_thread_is_known_by_its_name_its_id_and_its_start),
        cmocka_unit_test(a_new_name_shows_from_then_on),
        cmocka_unit_test(the_largest_labels_fill_the_buffer_and_no_more),
        cmocka_unit_test(without_memory_for_a_block_there_are_no_labels),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
