/* SPDX-License-Identifier: MIT
 * Readers of other libraries' labels on memory made by hand: what they take, what they pass over,
 * and that nothing beyond the bounds is touched (the sanitizer and unmapped pages see to that). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/region.h"
#include "labels/process_context.h"
#include "labels/readable.h"
#include "labels/source.h"
#include "base/thread.h"

struct taken {
    struct source_reading reading;
    char text[4096];
    int n, room;
};

static bool take(struct source_reading *reading, const char *key, size_t key_bytes,
                 const char *value, size_t value_bytes)
{
    struct taken *taken = (struct taken *)reading;
    size_t n = strlen(taken->text);
    if (n + key_bytes + value_bytes + 3 < sizeof taken->text)
        snprintf(taken->text + n, sizeof taken->text - n, "%.*s=%.*s;", (int)key_bytes, key,
                 (int)value_bytes, value);
    return ++taken->n < taken->room;
}

static struct taken reading(void)
{
    return (struct taken){.reading = {.add = take, .n_probes_left = SOURCE_PROBES_MAX},
                          .room = 1 << 30};
}

/* The last n bytes before a page that can't be read. */
static void *before_the_edge(const void *bytes, size_t n)
{
    size_t room = (n + 8191) / 4096 * 4096;
    char *pages = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    char *edge = pages + room - 4096;
    assert_int_equal(munmap(edge, 4096), 0);
    return memcpy(edge - n, bytes, n);
}

/* ---- custom-labels ---- */

struct string {
    size_t n;
    const char *at;
};
struct label {
    struct string key, value;
};
struct set {
    const struct label *labels;
    size_t n, capacity;
};

#define TEXT(text) {sizeof(text) - 1, text}

static bool read_v1(const struct set *set, struct taken *taken)
{
    const void *slot = set;
    return custom_labels_read_v1((uintptr_t)&slot, &taken->reading);
}

static void custom_labels_are_handed_over_in_order_without_holes(void **state)
{
    (void)state;
    const struct label labels[] = {
        {TEXT("a"), TEXT("1")}, {{5, NULL}, TEXT("hole")}, {TEXT("b"), TEXT("")}, {TEXT("a"), TEXT("2")}};
    struct set set = {labels, 4, 4};
    struct taken v1 = reading(), v0 = reading();
    assert_true(read_v1(&set, &v1));
    assert_string_equal(v1.text, "a=1;b=;a=2;");
    assert_false(v1.reading.last_wins);
    assert_true(custom_labels_read_v0((uintptr_t)&set, &v0.reading));
    assert_string_equal(v0.text, v1.text);
}

static void no_set_and_a_set_of_holes_are_nobodys(void **state)
{
    (void)state;
    const struct label hole = {{0, NULL}, {0, NULL}};
    struct set empty = {NULL, 0, 0}, holes = {&hole, 1, 1};
    struct taken taken = reading();
    assert_false(read_v1(NULL, &taken));
    assert_false(read_v1(&empty, &taken));
    assert_false(read_v1(&holes, &taken));
    assert_int_equal(taken.n, 0);
}

static void keys_and_values_beyond_the_limits_are_refused_and_cut(void **state)
{
    (void)state;
    static char text[4096];
    memset(text, 'x', sizeof text);
    const struct label labels[] = {{{65, text}, TEXT("v")},
                                   {{0, text}, TEXT("v")},
                                   {{64, text}, TEXT("v")},
                                   {TEXT("long"), {sizeof text, text}}};
    struct set set = {labels, 4, 4};
    struct taken taken = reading();
    assert_true(read_v1(&set, &taken));
    assert_int_equal(taken.n, 2);
    assert_int_equal(strlen(taken.text), 64 + 3 + 5 + 256 + 1);
}

static void reading_ends_when_there_is_no_more_room(void **state)
{
    (void)state;
    static struct label labels[50];
    for (int i = 0; i < 50; i++)
        labels[i] = (struct label){TEXT("k"), TEXT("v")};
    struct set set = {labels, 50, 50};
    struct taken taken = reading();
    taken.room = 32;
    assert_true(read_v1(&set, &taken));
    assert_int_equal(taken.n, 32);
}

static void custom_labels_that_reach_into_unmapped_memory_are_left_out(void **state)
{
    (void)state;
    char *edge = (char *)before_the_edge("abc", 3) + 3;
    const struct label good = {TEXT("a"), TEXT("1")};
    struct label *last = before_the_edge(&good, sizeof good);
    struct set beyond = {last, 1000000, 0}, nowhere = {(const struct label *)edge, 1, 1};
    struct label strings[] = {{{4, edge - 3}, TEXT("v")}, {TEXT("k"), {4, edge - 3}}, {TEXT("k"), {3, edge - 3}}};
    struct set set = {strings, 3, 3};
    struct taken a = reading(), b = reading(), c = reading();
    assert_true(read_v1(&beyond, &a));
    assert_string_equal(a.text, "a=1;");
    assert_false(read_v1(&nowhere, &b));
    assert_true(read_v1(&set, &c));
    assert_string_equal(c.text, "k=abc;");
    assert_false(custom_labels_read_v1((uintptr_t)edge - 4, &b.reading));
    assert_false(custom_labels_read_v0(1, &b.reading));
}

static void system_calls_of_one_sample_are_bounded(void **state)
{
    (void)state;
    enum { N = 2000 };
    char *pages = mmap(NULL, N * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static struct label labels[N];
    for (int i = 0; i < N; i++) {
        pages[i * 4096] = 'k';
        labels[i] = (struct label){{1, pages + i * 4096}, {0, NULL}};
    }
    struct set set = {labels, N, N};
    struct taken taken = reading();
    read_v1(&set, &taken);
    assert_int_equal(taken.reading.n_probes_left, 0);
    assert_in_range(taken.n, 1, SOURCE_PROBES_MAX);
    munmap(pages, N * 4096);
}

/* ---- OpenTelemetry ---- */

static struct record {
    uint8_t trace_id[16], span_id[8], valid, flags;
    uint16_t n;
    uint8_t attributes[65535];
} record;

static bool read_record(const void *at, struct taken *taken)
{
    return otel_read((uintptr_t)&at, &taken->reading);
}

static void only_a_record_marked_valid_is_read(void **state)
{
    (void)state;
    memset(&record, 0, sizeof record);
    memset(record.trace_id, 0xA5, 16);
    memset(record.span_id, 0x0F, 8);
    for (int valid = 0; valid < 256; valid++) {
        struct taken taken = reading();
        record.valid = (uint8_t)valid;
        assert_int_equal(read_record(&record, &taken), valid == 1);
        assert_string_equal(taken.text,
                            valid == 1 ? "trace_id=a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5;"
                                         "span_id=0f0f0f0f0f0f0f0f;" : "");
    }
    struct taken none = reading();
    assert_false(read_record(NULL, &none));
}

static void an_empty_record_is_nobodys(void **state)
{
    (void)state;
    struct taken taken = reading();
    memset(&record, 0, sizeof record);
    record.valid = 1;
    assert_false(read_record(&record, &taken));
    record.n = 1;
    assert_false(read_record(&record, &taken));
}

static void attributes_without_known_names_are_left_out_and_names_asked_for(void **state)
{
    (void)state;
    struct taken taken = reading();
    memset(&record, 0, sizeof record);
    record.valid = 1;
    record.n = 6;
    memcpy(record.attributes, "\0\1x\1\1y", 6);
    assert_false(process_context_is_wanted());
    assert_true(read_record(&record, &taken));
    assert_int_equal(taken.n, 0);
    assert_true(process_context_is_wanted());
}

static void a_record_that_reaches_into_unmapped_memory_is_left_out(void **state)
{
    (void)state;
    memset(&record, 0, sizeof record);
    memset(record.trace_id, 1, 16);
    record.valid = 1;
    struct record *whole = before_the_edge(&record, 28);
    struct taken taken = reading();
    assert_true(read_record(whole, &taken));
    record.n = 1;
    struct record *cut = before_the_edge(&record, 28);
    taken = reading();
    assert_false(read_record(cut, &taken));
    assert_false(read_record((char *)whole + 1, &taken));
    assert_int_equal(taken.n, 0);
}

static void whatever_the_attributes_hold_the_area_is_not_left(void **state)
{
    (void)state;
    uint32_t random = 12345;
    for (int round = 0; round < 300; round++) {
        memset(&record, 0, 28);
        record.valid = 1;
        record.n = (uint16_t)(round < 5 ? 65535 - round : round);
        for (size_t i = 0; i < record.n; i++)
            record.attributes[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        struct taken taken = reading();
        assert_int_equal(read_record(before_the_edge(&record, 28u + record.n), &taken),
                         record.n >= 2);
    }
}

static void a_page_is_asked_about_once_a_cycle(void **state)
{
    (void)state;
    char *page = before_the_edge("x", 1);
    unsigned n_left = 2;
    assert_true(readable((uintptr_t)page, 1, &n_left));
    assert_true(readable((uintptr_t)page, 1, &n_left));
    assert_int_equal(n_left, 1);
    munmap(page - 4095, 4096);
    readable_forget();
    assert_false(readable((uintptr_t)page, 1, &n_left));
    assert_int_equal(n_left, 0);
    assert_false(readable((uintptr_t)state, 1, &n_left));
}

static void no_range_that_leaves_user_space_is_readable(void **state)
{
    (void)state;
    unsigned n_left = 100;
    const uintptr_t addresses[] = {0, 1, 4095, UINTPTR_MAX, UINTPTR_MAX - 4096,
                                   (uintptr_t)1 << 47, (uintptr_t)1 << 63};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++)
        assert_false(readable(addresses[i], 8, &n_left));
    assert_false(readable((uintptr_t)&n_left, SIZE_MAX, &n_left));
    assert_int_equal(n_left, 100);
}

static int open_regions(void **state)
{
    (void)state;
    return region_open(1 << 20, 1 << 20) && readable_open() && process_context_open() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(custom_labels_are_handed_over_in_order_without_holes),
        cmocka_unit_test(no_set_and_a_set_of_holes_are_nobodys),
        cmocka_unit_test(keys_and_values_beyond_the_limits_are_refused_and_cut),
        cmocka_unit_test(reading_ends_when_there_is_no_more_room),
        cmocka_unit_test(custom_labels_that_reach_into_unmapped_memory_are_left_out),
        cmocka_unit_test(system_calls_of_one_sample_are_bounded),
        cmocka_unit_test(only_a_record_marked_valid_is_read),
        cmocka_unit_test(an_empty_record_is_nobodys),
        cmocka_unit_test(attributes_without_known_names_are_left_out_and_names_asked_for),
        cmocka_unit_test(a_record_that_reaches_into_unmapped_memory_is_left_out),
        cmocka_unit_test(whatever_the_attributes_hold_the_area_is_not_left),
        cmocka_unit_test(a_page_is_asked_about_once_a_cycle),
        cmocka_unit_test(no_range_that_leaves_user_space_is_readable),
    };
    return cmocka_run_group_tests(tests, open_regions, NULL);
}
