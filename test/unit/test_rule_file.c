/* SPDX-License-Identifier: MIT
 * Files of label rules: the syntax, the place of every error, patterns, and which rule wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "labels/rule_file.h"

static struct label_rules *rules;
static struct rule_error error;

static bool parse_bytes(const char *text, size_t n_bytes)
{
    free(rules);
    rules = calloc(1, sizeof *rules);
    memcpy(rules->text, text, n_bytes < sizeof rules->text ? n_bytes : sizeof rules->text);
    error = (struct rule_error){0, 0, NULL};
    return rule_file_parse(rules, n_bytes, &error);
}

static void parse(const char *text)
{
    if (!parse_bytes(text, strlen(text)))
        fail_msg("'%s' is refused at %u:%u: %s", text, error.line, error.column, error.what);
}

/* Refused at that place, and for that reason. */
static void assert_refused(const char *text, unsigned line, unsigned column, const char *reason)
{
    if (parse_bytes(text, strlen(text)))
        fail_msg("'%s' is taken", text);
    if (error.line != line || error.column != column || !strstr(error.what, reason))
        fail_msg("'%s' is refused at %u:%u: %s", text, error.line, error.column, error.what);
}

/* "key=value" of a rule. */
static const char *label(unsigned rule)
{
    static char text[LABEL_KEY_BYTES + LABEL_VALUE_BYTES + 2];
    const struct label_rule *found = &rules->rules[rule];
    const struct rule_key *key = &rules->keys[found->key];
    snprintf(text, sizeof text, "%.*s=%.*s", (int)key->n_bytes, rules->text + key->at,
             found->value_bytes, rules->text + found->value);
    return text;
}

static bool takes_function(unsigned rule, const char *name)
{
    return rule_takes_function(rules, &rules->rules[rule], name, strlen(name));
}

static bool takes_module(unsigned rule, const char *name)
{
    return rule_takes_module(rules, &rules->rules[rule], name);
}

/* ---- what is taken ---- */

static void a_line_is_a_label_and_patterns_and_the_rest_is_air(void **state)
{
    (void)state;
    parse("# allocations by component\n"
          "\n"
          "component=prepare  function sqlite3_prepare* sqlite3RunParser  # parser\n"
          "\tsubsystem=tls\tmodule libssl.so* \r\n"
          "   # indented\n"
          "component=init function *_init module libfoo.so* libbar.so*");
    assert_int_equal(rules->n_rules, 3);
    assert_int_equal(rules->n_keys, 2);
    assert_string_equal(label(0), "component=prepare");
    assert_string_equal(label(1), "subsystem=tls");
    assert_string_equal(label(2), "component=init");
    assert_int_equal(rules->rules[0].line, 3);
    assert_int_equal(rules->rules[0].column, 1);
    assert_int_equal(rules->rules[1].column, 2);
    assert_int_equal(rules->rules[2].line, 6);
    assert_int_equal(rules->rules[0].key, rules->rules[2].key);
    assert_true(takes_function(0, "sqlite3_prepare_v2") && takes_function(0, "sqlite3RunParser"));
    assert_false(takes_function(0, "sqlite3_step"));
    assert_true(takes_module(1, "libssl.so.3") && !takes_module(1, "libcrypto.so.3"));
    assert_true(takes_module(2, "libbar.so") && takes_function(2, "my_init"));
    assert_false(takes_module(2, "libssl.so.3"));
    assert_true(takes_module(0, "anything") && takes_function(1, "anything"));
}

static void no_rules_are_good_rules(void **state)
{
    (void)state;
    parse("");
    assert_int_equal(rules->n_rules, 0);
    parse("\n\n# nothing\n   \n\r\n");
    assert_int_equal(rules->n_rules, 0);
}

static void labels_are_percent_decoded_and_patterns_are_not(void **state)
{
    (void)state;
    parse("row%20cache=a%3Db%2Cc%25=d function a%62c\nrow%20cache=%C3%A4 module m\n");
    assert_string_equal(label(0), "row cache=a=b,c%=d");
    assert_string_equal(label(1), "row cache=\xC3\xA4");
    assert_int_equal(rules->n_keys, 1);
    assert_true(takes_function(0, "a%62c") && !takes_function(0, "abc"));
}

static void words_may_hold_what_begins_a_comment_or_names_a_kind(void **state)
{
    (void)state;
    parse("k=v#w function operator# functions module# \n");
    assert_string_equal(label(0), "k=v#w");
    assert_true(takes_function(0, "operator#") && takes_function(0, "functions"));
    assert_int_equal(rules->rules[0].modules.n, 0);
    parse("k=v function f #module m\n");
    assert_int_equal(rules->n_patterns, 1);
}

static void the_longest_key_and_value_are_kept_whole(void **state)
{
    (void)state;
    char text[600], expected[400];
    snprintf(text, sizeof text, "%064d=%0256d function f", 7, 8);
    snprintf(expected, sizeof expected, "%064d=%0256d", 7, 8);
    parse(text);
    assert_string_equal(label(0), expected);
}

/* ---- what is refused, and where ---- */

static void each_error_names_its_line_and_column(void **state)
{
    (void)state;
    assert_refused("component", 1, 1, "key=value");
    assert_refused("a=b function f\n\n  oops function f", 3, 3, "key=value");
    assert_refused("=b function f", 1, 1, "key is missing");
    assert_refused("a= function f", 1, 3, "value is missing");
    assert_refused("a=b,c=d function f", 1, 4, "%2C");
    assert_refused("a=b%2 function f", 1, 4, "hexadecimal");
    assert_refused("a%zz=b function f", 1, 2, "hexadecimal");
    assert_refused("pprof::a=b function f", 1, 1, "pprof::");
    assert_refused("a=b", 1, 4, "'function' or 'module'");
    assert_refused("a=b  # only a label", 1, 6, "'function' or 'module'");
    assert_refused("a=b functoin f", 1, 5, "'function' or 'module'");
    assert_refused("a=b function", 1, 13, "pattern is missing");
    assert_refused("a=b function # f", 1, 14, "pattern is missing");
    assert_refused("a=b function module m", 1, 14, "pattern is missing");
    assert_refused("a=b function f module", 1, 22, "pattern is missing");
    assert_refused("a=b function f function g", 1, 16, "twice");
    assert_refused("a=b module m function f module n", 1, 25, "twice");
    assert_refused("a=b module /usr/lib/m", 1, 12, "base name");
    assert_refused("a=b function f\na=b\tfunction \x01", 2, 14, "control character");
    assert_refused("a=b function f\ra=b function g", 1, 15, "control character");
    assert_refused("a=b function f\x7f", 1, 15, "control character");
}

static void a_nul_is_refused_wherever_it_stands(void **state)
{
    (void)state;
    static const char good[] = "a=b function f module m\n";
    for (size_t i = 0; i + 2 < sizeof good; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        text[i] = '\0';
        assert_false(parse_bytes(text, sizeof good - 1));
        assert_int_equal(error.column, i + 1);
        assert_non_null(strstr(error.what, "control"));
    }
}

static void keys_and_values_too_long_are_refused(void **state)
{
    (void)state;
    char text[600];
    snprintf(text, sizeof text, "%065d=b function f", 7);
    assert_refused(text, 1, 1, "64 bytes");
    snprintf(text, sizeof text, "a=%0257d function f", 7);
    assert_refused(text, 1, 3, "256 bytes");
}

/* n copies of a line; with a %, its number goes there. */
static char *lines(const char *format, unsigned n)
{
    size_t capacity = n * (strlen(format) + 16) + 1, at = 0;
    char *text = malloc(capacity);
    text[0] = '\0';
    for (unsigned i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, capacity - at, format, i);
    return text;
}

static void each_limit_is_kept_and_named(void **state)
{
    (void)state;
    char *text = lines("a=b function f%u\n", LABEL_RULES_MAX);
    parse(text);
    assert_int_equal(rules->n_rules, LABEL_RULES_MAX);
    free(text);
    text = lines("a=b function f%u\n", LABEL_RULES_MAX + 1);
    assert_refused(text, LABEL_RULES_MAX + 1, 1, "1024 rules");
    free(text);
    text = lines("k%u=b function f\n", RULE_KEYS_MAX);
    parse(text);
    assert_int_equal(rules->n_keys, RULE_KEYS_MAX);
    free(text);
    text = lines("k%u=b function f\n", RULE_KEYS_MAX + 1);
    assert_refused(text, RULE_KEYS_MAX + 1, 1, "32 keys");
    free(text);
    text = lines("a=b function 1 2 3 4 5 6 7 8 9\n", RULE_PATTERNS_MAX / 9 + 1);
    assert_refused(text, RULE_PATTERNS_MAX / 9 + 1, 14 + 2 * (RULE_PATTERNS_MAX % 9),
                   "4096 patterns");
    free(text);
}

static void lines_and_files_have_a_length(void **state)
{
    (void)state;
    static char text[RULE_FILE_BYTES_MAX + 2];
    memset(text, '#', sizeof text - 1);
    assert_refused(text, 1, 1, "256 KiB");
    text[RULE_LINE_BYTES_MAX + 1] = '\0';
    assert_refused(text, 1, RULE_LINE_BYTES_MAX + 1, "1024 bytes");
    text[RULE_LINE_BYTES_MAX] = '\0';
    parse(text);
    char *full = lines("#23456789012345\n", RULE_FILE_BYTES_MAX / 16);
    assert_int_equal(strlen(full), RULE_FILE_BYTES_MAX);
    parse(full);
    free(full);
}

/* ---- patterns ---- */

static bool matches(const char *pattern, const char *name)
{
    return rule_pattern_matches(pattern, name, strlen(name));
}

static void stars_and_question_marks_match_as_they_should(void **state)
{
    (void)state;
    assert_true(matches("abc", "abc") && matches("*", "") && matches("*", "abc"));
    assert_true(matches("a*", "a") && matches("*c", "abc") && matches("a*c", "ac"));
    assert_true(matches("a*b*c", "aXbXbXc") && matches("**a**", "bab") && matches("?", "x"));
    assert_true(matches("a?c*", "abcd") && matches("*aab", "aaaab") && matches("*?", "x"));
    assert_false(matches("abc", "ab") || matches("ab", "abc") || matches("", "a"));
    assert_false(matches("?", "") || matches("a*c", "abd") || matches("*?", ""));
    assert_false(matches("a*b*c", "acb") || matches("*aab", "aab_"));
    assert_true(matches("", ""));
    assert_false(matches("[a]", "a"));
    assert_true(matches("[a]", "[a]")); /* only * and ? are special */
    assert_true(rule_pattern_matches("ab", "abc", 2));
}

static bool slow_matches(const char *pattern, const char *name)
{
    if (*pattern == '*')
        return slow_matches(pattern + 1, name) || (*name && slow_matches(pattern, name + 1));
    if (!*pattern || !*name)
        return *pattern == *name;
    return (*pattern == '?' || *pattern == *name) && slow_matches(pattern + 1, name + 1);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    return z ^ z >> 27;
}

static void random_text(uint64_t *random, const char *alphabet, char *text, size_t max)
{
    size_t n = next_random(random) % (max + 1), n_alphabet = strlen(alphabet);
    for (size_t i = 0; i < n; i++)
        text[i] = alphabet[next_random(random) % n_alphabet];
    text[n] = '\0';
}

static void matching_agrees_with_the_definition(void **state)
{
    (void)state;
    uint64_t random = 1;
    unsigned n_matching = 0;
    for (int i = 0; i < 200000; i++) {
        char pattern[9], name[9];
        random_text(&random, "ab*?", pattern, 8);
        random_text(&random, "ab", name, 8);
        bool is_match = slow_matches(pattern, name);
        if (matches(pattern, name) != is_match)
            fail_msg("'%s' on '%s' should be %d", pattern, name, is_match);
        n_matching += is_match;
    }
    assert_in_range(n_matching, 10000, 190000); /* both answers were tried */
}

static void a_pattern_of_many_stars_ends_soon(void **state)
{
    (void)state;
    char name[16001];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(matches("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", name));
}

/* ---- which rule wins ---- */

/* Frames as lists of the rules that take them, leaf first: "12 0 3" is {1,2}, {0}, {3}. */
static const char *winners(const char *frames)
{
    static char text[RULE_KEYS_MAX + 1];
    struct rule_choice choice = {.settled = 0};
    uint16_t chosen[RULE_KEYS_MAX];
    bool is_done = false;
    for (; *frames && !is_done; frames++) {
        if (*frames == ' ')
            is_done = rule_choice_next_frame(&choice, rules);
        else
            rule_choice_offer(&choice, rules, (unsigned)(*frames - '0'));
    }
    unsigned n = rule_choice_list(&choice, chosen);
    for (unsigned i = 0; i < n; i++)
        text[i] = (char)('0' + chosen[i]);
    text[n] = '\0';
    return text;
}

static void the_frame_nearest_the_leaf_wins_then_the_first_rule(void **state)
{
    (void)state;
    parse("a=0 function f\nb=1 function f\na=2 function f\nb=3 function f\na=4 function f\n");
    assert_string_equal(winners(""), "");
    assert_string_equal(winners("4 2 0"), "4");
    assert_string_equal(winners("420 "), "0");
    assert_string_equal(winners("024 "), "0");
    assert_string_equal(winners("4 1 0 3"), "41");
    assert_string_equal(winners(" 3 2 1 0"), "23");
    assert_string_equal(winners("31 42 0"), "21");
}

static void a_stack_is_done_when_every_wanted_key_has_its_rule(void **state)
{
    (void)state;
    struct rule_choice choice = {.settled = 0};
    parse("a=0 function f\nb=1 function f\n");
    rule_choice_offer(&choice, rules, 0);
    assert_false(rule_choice_next_frame(&choice, rules));
    rules->keys[1].is_wanted = false;
    assert_true(rule_choice_next_frame(&choice, rules));
    rules->keys[1].is_wanted = true;
    rule_choice_offer(&choice, rules, 1);
    assert_true(rule_choice_next_frame(&choice, rules));
}

/* ---- anything ---- */

static void assert_inside(uint32_t at, size_t n_bytes)
{
    assert_in_range(at, 0, RULE_FILE_BYTES_MAX);
    assert_in_range(at + n_bytes, 0, RULE_FILE_BYTES_MAX);
}

static void whatever_is_parsed_is_whole(void **state)
{
    (void)state;
    uint64_t random = 7;
    unsigned n_good = 0, n_bad = 0;
    static const char *const words[] = {"a=b", " ", "function", "module", "\n", "f*", "#", "%41",
                                        "=", " function f\n", "k=v module m", "\t", "\xff", ","};
    for (int i = 0; i < 3000; i++) {
        char text[512];
        size_t n = 0;
        for (uint64_t left = next_random(&random) % 40; left; left--)
            n += (size_t)sprintf(text + n, "%s", words[next_random(&random) % ARRAY_LENGTH(words)]);
        if (n && next_random(&random) % 4 == 0)
            text[next_random(&random) % n] = (char)next_random(&random);
        bool is_good = parse_bytes(text, n);
        n_good += is_good && rules->n_rules > 0;
        n_bad += !is_good;
        assert_true(is_good || (error.what && error.line >= 1 && error.column >= 1));
        for (unsigned r = 0; r < rules->n_rules; r++) {
            const struct label_rule *rule = &rules->rules[r];
            assert_true(rule->functions.n + rule->modules.n > 0);
            assert_true(rule->value_bytes > 0 && rules->keys[rule->key].n_bytes > 0);
            assert_inside(rule->value, rule->value_bytes);
        }
    }
    assert_true(n_good > 50 && n_bad > 50);
    free(rules);
    rules = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_label_and_patterns_and_the_rest_is_air),
        cmocka_unit_test(no_rules_are_good_rules),
        cmocka_unit_test(labels_are_percent_decoded_and_patterns_are_not),
        cmocka_unit_test(words_may_hold_what_begins_a_comment_or_names_a_kind),
        cmocka_unit_test(the_longest_key_and_value_are_kept_whole),
        cmocka_unit_test(each_error_names_its_line_and_column),
        cmocka_unit_test(a_nul_is_refused_wherever_it_stands),
        cmocka_unit_test(keys_and_values_too_long_are_refused),
        cmocka_unit_test(each_limit_is_kept_and_named),
        cmocka_unit_test(lines_and_files_have_a_length),
        cmocka_unit_test(stars_and_question_marks_match_as_they_should),
        cmocka_unit_test(matching_agrees_with_the_definition),
        cmocka_unit_test(a_pattern_of_many_stars_ends_soon),
        cmocka_unit_test(the_frame_nearest_the_leaf_wins_then_the_first_rule),
        cmocka_unit_test(a_stack_is_done_when_every_wanted_key_has_its_rule),
        cmocka_unit_test(whatever_is_parsed_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
