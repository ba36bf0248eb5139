/* SPDX-License-Identifier: MIT
 * Lines, numbers, cutting at characters, lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/text.h"

/* A copy of its own allocation, so that a sanitizer sees a read past its end. */
static size_t cut(const char *text, size_t n_bytes, size_t max)
{
    char *copy = malloc(n_bytes + 1);
    memcpy(copy, text, n_bytes);
    char *exact = realloc(copy, n_bytes ? n_bytes : 1);
    size_t result = text_cut_at_character(exact, n_bytes, max);
    free(exact);
    return result;
}

static void text_that_fits_is_not_cut(void **state)
{
    (void)state;
    assert_int_equal(cut("", 0, 0), 0);
    assert_int_equal(cut("abc", 3, 3), 3);
    assert_int_equal(cut("abc", 3, 100), 3);
    assert_int_equal(cut("\xE2\x82\xAC", 3, 3), 3);
}

static void ascii_is_cut_anywhere(void **state)
{
    (void)state;
    for (size_t max = 0; max < 6; max++)
        assert_int_equal(cut("abcdef", 6, max), max);
}

static void a_character_of_any_length_is_cut_whole(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x90\xA7"};
    for (size_t i = 0; i < ARRAY_LENGTH(characters); i++) {
        char text[16] = "ab";
        size_t width = strlen(characters[i]);
        strcat(strcat(text, characters[i]), "cd");
        assert_int_equal(cut(text, strlen(text), 1), 1);
        for (size_t max = 2; max < 2 + width; max++)
            assert_int_equal(cut(text, strlen(text), max), 2);
        assert_int_equal(cut(text, strlen(text), 2 + width), 2 + width);
        assert_int_equal(cut(text, strlen(text), 3 + width), 3 + width);
    }
}

static void a_first_character_that_does_not_fit_leaves_nothing(void **state)
{
    (void)state;
    for (size_t max = 0; max < 4; max++)
        assert_int_equal(cut("\xF0\x9F\x90\xA7", 4, max), 0);
}

static void bytes_that_are_no_characters_are_cut_at_the_limit(void **state)
{
    (void)state;
    char bytes[64];
    memset(bytes, 0x80, sizeof bytes);
    for (size_t max = 4; max < sizeof bytes; max++)
        assert_int_equal(cut(bytes, sizeof bytes, max), max);
}

static bool is_number(const char *text, uint64_t expected)
{
    uint64_t number = ~expected;
    return text_to_number(text, strlen(text), &number) && number == expected;
}

static void numbers_are_digits_up_to_64_bits(void **state)
{
    (void)state;
    uint64_t number;
    assert_true(is_number("0", 0));
    assert_true(is_number("007", 7));
    assert_true(is_number("18446744073709551615", UINT64_MAX));
    assert_true(text_to_number("12345", 3, &number));
    assert_int_equal(number, 123);
}

static void what_is_no_number_or_too_large_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "18446744073709551616", "18446744073709551620",
                                      "-1", "99999999999999999999", "184467440737095516150",
                                      "1x", "+1", " 1", "1 ", "0x1", "/", ":"};
    uint64_t number;
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_false(text_to_number(bad[i], strlen(bad[i]), &number));
}

static void a_line_grows_and_is_cut_where_it_is_full(void **state)
{
    (void)state;
    char buffer[16];
    memset(buffer, '#', sizeof buffer);
    struct line line = line_in(buffer, 12);
    assert_string_equal(buffer, "");
    line_add(&line, "pid ");
    line_add_number(&line, 4096);
    line_add_bytes(&line, "-xyz", 1);
    assert_string_equal(buffer, "pid 4096-");
    assert_false(line.is_cut);
    line_add_hex(&line, 0xABCD);
    assert_string_equal(buffer, "pid 4096-ab");
    assert_true(line.is_cut);
    assert_int_equal(line.n_bytes, 11);
    line_add(&line, "more");
    assert_string_equal(buffer, "pid 4096-ab");
    assert_memory_equal(buffer + 12, "####", 4);
}

static void numbers_are_written_in_both_bases_at_both_ends(void **state)
{
    (void)state;
    char buffer[80];
    struct line line = line_in(buffer, sizeof buffer);
    line_add_number(&line, 0);
    line_add(&line, " ");
    line_add_number(&line, UINT64_MAX);
    line_add(&line, " ");
    line_add_hex(&line, 0);
    line_add(&line, " ");
    line_add_hex(&line, UINT64_MAX);
    assert_string_equal(buffer, "0 18446744073709551615 0 ffffffffffffffff");
}

static bool has(const char *list, const char *item)
{
    return text_list_has(list, item, strlen(item));
}

static void a_list_has_whole_items_only(void **state)
{
    (void)state;
    assert_true(has("a", "a"));
    assert_true(has("trace_id,span_id", "trace_id"));
    assert_true(has("trace_id,span_id", "span_id"));
    assert_false(has("trace_id,span_id", "trace"));
    assert_false(has("trace_id,span_id", "span_id2"));
    assert_false(has("trace_id,span_id", "id"));
    assert_false(has("trace_id,span_id", "trace_id,span_id"));
    assert_false(has("", "a"));
    assert_false(has("", ""));
    assert_true(text_list_has("ab,cd", "cdef", 2));
}

static void a_hash_depends_on_every_byte_and_on_the_length(void **state)
{
    (void)state;
    unsigned char bytes[40] = {0};
    for (size_t n = 1; n <= sizeof bytes; n++) {
        uint64_t before = hash_bytes(bytes, n);
        assert_int_not_equal(before, hash_bytes(bytes, n - 1));
        for (size_t i = 0; i < n; i++) {
            bytes[i] = 1;
            assert_int_not_equal(hash_bytes(bytes, n), before);
            bytes[i] = 0;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_that_fits_is_not_cut),
        cmocka_unit_test(ascii_is_cut_anywhere),
        cmocka_unit_test(a_character_of_any_length_is_cut_whole),
        cmocka_unit_test(a_first_character_that_does_not_fit_leaves_nothing),
        cmocka_unit_test(bytes_that_are_no_characters_are_cut_at_the_limit),
        cmocka_unit_test(numbers_are_digits_up_to_64_bits),
        cmocka_unit_test(what_is_no_number_or_too_large_is_refused),
        cmocka_unit_test(a_line_grows_and_is_cut_where_it_is_full),
        cmocka_unit_test(numbers_are_written_in_both_bases_at_both_ends),
        cmocka_unit_test(a_list_has_whole_items_only),
        cmocka_unit_test(a_hash_depends_on_every_byte_and_on_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
