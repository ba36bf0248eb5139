/* SPDX-License-Identifier: MIT
 * Names of attributes from a process context: well-formed payloads, cut ones, and noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "labels/key_map.h"

/* The array attribute {tenant, route, 7 (a number), ""}, after a resource and another attribute.
 * Lengths in octal: string escapes end after three digits. */
static const char payload[] = "\012\003\012\001x"
                              "\022\013\012\003foo\022\004\012\002ba"
                              "\022\077\012\035threadlocal.attribute_key_map"
                              "\022\036\052\034"
                              "\012\010\012\006tenant"
                              "\012\007\012\005route"
                              "\012\002\030\007"
                              "\012\003\012\001z";

static struct key_map map;

static bool parse(const void *bytes, size_t n)
{
    /* Its own allocation, so that a byte read too far is seen. */
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    bool is_good = key_map_parse(&map, copy, n);
    free(copy);
    return is_good;
}

static void assert_key(unsigned index, const char *wanted)
{
    assert_int_equal(map.key_bytes[index], strlen(wanted));
    assert_memory_equal(map.keys[index], wanted, strlen(wanted));
}

static void names_have_the_index_of_their_place(void **state)
{
    (void)state;
    assert_true(parse(payload, sizeof payload - 1));
    assert_int_equal(map.n_keys, 4);
    assert_key(0, "tenant");
    assert_key(1, "route");
    assert_key(2, ""); /* not a string, but it has its place */
    assert_key(3, "z");
}

static void without_the_attribute_there_are_no_names(void **state)
{
    (void)state;
    assert_true(parse("", 0));
    assert_int_equal(map.n_keys, 0);
    assert_true(parse(payload, 18));
    assert_int_equal(map.n_keys, 0);
}

static void a_payload_cut_anywhere_gives_whole_names_or_none(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof payload - 1; n++) {
        bool is_good = parse(payload, n);
        assert_int_equal(is_good, n == 0 || n == 5 || n == 18);
        if (is_good)
            assert_int_equal(map.n_keys, 0);
    }
}

static void names_that_can_be_no_key_keep_their_place_empty(void **state)
{
    (void)state;
    uint8_t value[200], array[400], pair[500], all[600];
    size_t n = 0;
    const char *names[] = {"pprof::x", "0123456789012345678901234567890123456789012345678901234567890123",
                           "01234567890123456789012345678901234567890123456789012345678901234"};
    for (int i = 0; i < 3; i++) {
        size_t n_name = strlen(names[i]);
        value[0] = 10, value[1] = (uint8_t)n_name;
        memcpy(value + 2, names[i], n_name);
        array[n++] = 10, array[n++] = (uint8_t)(n_name + 2);
        memcpy(array + n, value, n_name + 2);
        n += n_name + 2;
    }
    memcpy(pair, "\012\035threadlocal.attribute_key_map\022", 32);
    size_t at = 32;
    pair[at++] = (uint8_t)((n + 3) | 128), pair[at++] = (uint8_t)((n + 3) >> 7);
    pair[at++] = 42, pair[at++] = (uint8_t)(n | 128), pair[at++] = (uint8_t)(n >> 7);
    memcpy(pair + at, array, n);
    at += n;
    all[0] = 18, all[1] = (uint8_t)(at | 128), all[2] = (uint8_t)(at >> 7);
    memcpy(all + 3, pair, at);
    assert_true(parse(all, at + 3));
    assert_int_equal(map.n_keys, 3);
    assert_key(0, "");
    assert_key(1, names[1]);
    assert_key(2, "");
}

static void more_than_256_names_are_cut(void **state)
{
    (void)state;
    enum { N = 300 };
    static uint8_t all[N * 5 + 64];
    size_t n_array = N * 5, n_value = n_array + 3, n_pair = 31 + 1 + 2 + n_value, at = 0;
    all[at++] = 18, all[at++] = (uint8_t)(n_pair | 128), all[at++] = (uint8_t)(n_pair >> 7);
    memcpy(all + at, "\012\035threadlocal.attribute_key_map\022", 32);
    at += 32;
    all[at++] = (uint8_t)(n_value | 128), all[at++] = (uint8_t)(n_value >> 7);
    all[at++] = 42, all[at++] = (uint8_t)(n_array | 128), all[at++] = (uint8_t)(n_array >> 7);
    for (int i = 0; i < N; i++, at += 5)
        memcpy(all + at, "\012\003\012\001k", 5);
    assert_true(parse(all, at));
    assert_int_equal(map.n_keys, 256);
}

static void noise_is_refused_or_read_but_never_left(void **state)
{
    (void)state;
    uint32_t random = 1;
    uint8_t bytes[sizeof payload - 1];
    for (int round = 0; round < 20000; round++) {
        memcpy(bytes, payload, sizeof bytes);
        for (int i = 0; i < 1 + round % 4; i++) { /* flip a few bytes of a good one */
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % sizeof bytes] = (uint8_t)(random >> 24);
        }
        parse(bytes, sizeof bytes - random % 3);
        assert_in_range(map.n_keys, 0, KEY_MAP_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_the_index_of_their_place),
        cmocka_unit_test(without_the_attribute_there_are_no_names),
        cmocka_unit_test(a_payload_cut_anywhere_gives_whole_names_or_none),
        cmocka_unit_test(names_that_can_be_no_key_keep_their_place_empty),
        cmocka_unit_test(more_than_256_names_are_cut),
        cmocka_unit_test(noise_is_refused_or_read_but_never_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
