/* SPDX-License-Identifier: MIT
 * The LABELPROF_* variables: good values, bounds, and what is said of bad ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/signal_names.h"

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

static struct options parsed;
static char error[512];

static bool parse(const char *variable)
{
    char *environment[] = {(char *)"PATH=/bin", (char *)(uintptr_t)variable, NULL};
    error[0] = '\0';
    return options_parse(&parsed, environment, error, sizeof error);
}

static bool parse_value(const char *name, const char *value)
{
    static char variable[3 * OPTION_TEXT_BYTES];
    snprintf(variable, sizeof variable, "LABELPROF_%s=%s", name, value);
    return parse(variable);
}

#define assert_takes(name, value, field, number)                    \
    do {                                                            \
        if (!parse_value(name, value))                              \
            fail_msg("%s=%s is refused: %s", name, value, error);   \
        assert_int_equal(parsed.field, number);                     \
    } while (0)

/* Refused, in one line that names the variable, the value and what is accepted. */
static void assert_refuses(const char *name, const char *value, const char *accepts)
{
    char variable[OPTION_TEXT_BYTES];
    if (parse_value(name, value))
        fail_msg("%s=%s is taken", name, value);
    snprintf(variable, sizeof variable, "LABELPROF_%s=%s", name, value);
    assert_non_null(strstr(error, variable));
    assert_non_null(strstr(error, accepts));
    assert_null(strchr(error, '\n'));
}

static void without_variables_every_option_has_its_default(void **state)
{
    (void)state;
    memset(&parsed, 0xA5, sizeof parsed);
    assert_true(parse(NULL));
    assert_string_equal(parsed.out, "labelprof.%e.%p.%t.pb.gz");
    assert_int_equal(parsed.profiles, PROFILE_HEAP);
    assert_int_equal(parsed.sample_bytes, 512 * 1024);
    assert_int_equal(parsed.dump_interval_s, 0);
    assert_int_equal(parsed.dump_signal, 0);
    assert_int_equal(parsed.exit_signals, 0);
    assert_int_equal(parsed.cycle_ms, 1000);
    assert_string_equal(parsed.labels, "");
    assert_int_equal(parsed.thread_labels, THREAD_LABEL_NAME);
    assert_int_equal(parsed.label_sources & 1, 1);
    assert_string_equal(parsed.label_keys, "");
    assert_int_equal(parsed.max_label_sets, 4096);
    assert_int_equal(parsed.max_memory, 64 << 20);
    assert_int_equal(parsed.stack_depth, 128);
    assert_int_equal(parsed.children, 1);
    assert_int_equal(parsed.verbose, 0);
    assert_int_equal(parsed.disable, 0);
}

static void an_empty_value_is_the_default_for_every_variable(void **state)
{
    (void)state;
    struct options defaults;
    memset(&defaults, 0, sizeof defaults);
    memset(&parsed, 0, sizeof parsed);
    assert_true(options_parse(&defaults, NULL, error, sizeof error));
    for (size_t i = 0; i < n_option_rows; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "%s=", option_rows[i].name);
        memset(&parsed, 0, sizeof parsed);
        assert_true(parse(variable));
        assert_memory_equal(&parsed, &defaults, sizeof parsed);
    }
}

static void every_default_is_a_value_its_variable_takes(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_option_rows; i++)
        if (!option_read(&option_rows[i], option_rows[i].default_text, &parsed))
            fail_msg("%s", option_rows[i].name);
}

static void sizes_are_whole_numbers_with_a_unit_in_either_case(void **state)
{
    (void)state;
    assert_takes("SAMPLE_BYTES", "1", sample_bytes, 1);
    assert_takes("SAMPLE_BYTES", "524287", sample_bytes, 524287);
    assert_takes("SAMPLE_BYTES", "3k", sample_bytes, 3 << 10);
    assert_takes("SAMPLE_BYTES", "3K", sample_bytes, 3 << 10);
    assert_takes("SAMPLE_BYTES", "5m", sample_bytes, 5 << 20);
    assert_takes("SAMPLE_BYTES", "5M", sample_bytes, 5 << 20);
    assert_takes("SAMPLE_BYTES", "7g", sample_bytes, UINT64_C(7) << 30);
    assert_takes("SAMPLE_BYTES", "7G", sample_bytes, UINT64_C(7) << 30);
    assert_takes("SAMPLE_BYTES", "1t", sample_bytes, UINT64_C(1) << 40);
    assert_takes("SAMPLE_BYTES", "1T", sample_bytes, UINT64_C(1) << 40);
    assert_takes("SAMPLE_BYTES", "1024g", sample_bytes, UINT64_C(1) << 40);
    assert_takes("MAX_MEMORY", "1m", max_memory, 1 << 20);
    assert_takes("MAX_MEMORY", "64g", max_memory, UINT64_C(64) << 30);
}

static void sizes_that_are_none_or_out_of_bounds_are_refused(void **state)
{
    (void)state;
    const char *accepts = "from 1 to 1t";
    static const char *const bad[] = {
        "0",   "0k",  "k",    "-1",  "+1",   "1.5m", "1 k", " 1", "1kb", "1kk", "1p", "0x10", "ten",
        "1e3", "1,0", "2t",   "1025g", "1099511627777", "18446744073709551616",
        "16777216t",             /* 2^64: wraps to 0 */
        "16777217t",             /* wraps to 1t */
        "18014398509481985k",    /* wraps to 1k */
        "99999999999999999999k",
    };
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("SAMPLE_BYTES", bad[i], accepts);
    assert_refuses("MAX_MEMORY", "1048575", "from 1m to 64g");
    assert_refuses("MAX_MEMORY", "65g", "from 1m to 64g");
}

static void numbers_are_taken_up_to_both_bounds_and_no_further(void **state)
{
    (void)state;
    assert_takes("DUMP_INTERVAL_S", "0", dump_interval_s, 0);
    assert_takes("DUMP_INTERVAL_S", "31536000", dump_interval_s, 31536000);
    assert_refuses("DUMP_INTERVAL_S", "31536001", "0 (off) to 31536000");
    assert_takes("CYCLE_MS", "10", cycle_ms, 10);
    assert_takes("CYCLE_MS", "3600000", cycle_ms, 3600000);
    assert_refuses("CYCLE_MS", "9", "10 to 3600000");
    assert_refuses("CYCLE_MS", "3600001", "10 to 3600000");
    assert_takes("MAX_LABEL_SETS", "1", max_label_sets, 1);
    assert_takes("MAX_LABEL_SETS", "1048576", max_label_sets, 1048576);
    assert_refuses("MAX_LABEL_SETS", "0", "1 to 1048576");
    assert_refuses("MAX_LABEL_SETS", "1048577", "1 to 1048576");
    assert_takes("STACK_DEPTH", "1", stack_depth, 1);
    assert_takes("STACK_DEPTH", "512", stack_depth, STACK_DEPTH_MAX);
    assert_refuses("STACK_DEPTH", "0", "1 to 512");
    assert_refuses("STACK_DEPTH", "513", "1 to 512");
}

static void numbers_with_anything_but_digits_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"1k", "-1", "+1", " 1", "1 ", "1.0", "0x20", "many",
                                      "18446744073709551617", "184467440737095516170"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("STACK_DEPTH", bad[i], "1 to 512");
}

static void switches_are_0_or_1(void **state)
{
    (void)state;
    assert_takes("CHILDREN", "0", children, 0);
    assert_takes("CHILDREN", "1", children, 1);
    assert_takes("VERBOSE", "1", verbose, 1);
    assert_takes("DISABLE", "1", disable, 1);
    static const char *const names[] = {"CHILDREN", "VERBOSE", "DISABLE"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        assert_refuses(names[i], "2", "0 or 1");
        assert_refuses(names[i], "yes", "0 or 1");
    }
}

static void choices_are_any_subset_in_any_order(void **state)
{
    (void)state;
    assert_takes("PROFILES", "heap", profiles, PROFILE_HEAP);
    assert_takes("PROFILES", "allocs", profiles, PROFILE_ALLOCS);
    assert_takes("PROFILES", "allocs,heap", profiles, PROFILE_HEAP | PROFILE_ALLOCS);
    assert_takes("THREAD_LABELS", "none", thread_labels, 0);
    assert_takes("THREAD_LABELS", "id,name", thread_labels, THREAD_LABEL_NAME | THREAD_LABEL_ID);
    assert_takes("THREAD_LABELS", "start", thread_labels, THREAD_LABEL_START);
    assert_takes("LABEL_SOURCES", "none", label_sources, 0);
    assert_takes("LABEL_SOURCES", "api", label_sources, 1);
}

static void choices_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"hea", "heaps", "HEAP", ",heap", "heap,,allocs",
                                      "heap, allocs", ",", "none", "heap;allocs"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("PROFILES", bad[i], "heap, allocs");
    assert_refuses("THREAD_LABELS", "none,name", "none or a comma list of name, start, id");
    assert_refuses("THREAD_LABELS", "name,none", "none or a comma list of name, start, id");
    assert_refuses("THREAD_LABELS", "names", "none or a comma list of name, start, id");
}

static void a_comma_after_the_last_item_is_no_item(void **state)
{
    (void)state;
    assert_takes("PROFILES", "heap,", profiles, PROFILE_HEAP);
    assert_takes("EXIT_SIGNALS", "TERM,", exit_signals, BIT(SIGTERM));
    assert_true(parse_value("LABELS", "a=1,"));
}

static void a_dump_signal_is_a_name_or_a_number(void **state)
{
    (void)state;
    assert_takes("DUMP_SIGNAL", "USR2", dump_signal, SIGUSR2);
    assert_takes("DUMP_SIGNAL", "SIGUSR1", dump_signal, SIGUSR1);
    assert_takes("DUMP_SIGNAL", "15", dump_signal, SIGTERM);
    assert_takes("DUMP_SIGNAL", "RTMIN", dump_signal, (uint64_t)SIGRTMIN);
    assert_takes("DUMP_SIGNAL", "RTMIN+3", dump_signal, (uint64_t)SIGRTMIN + 3);
    assert_takes("DUMP_SIGNAL", "SIGRTMIN+3", dump_signal, (uint64_t)SIGRTMIN + 3);
    assert_takes("DUMP_SIGNAL", "RTMAX", dump_signal, (uint64_t)SIGRTMAX);
    assert_takes("DUMP_SIGNAL", "RTMAX-1", dump_signal, (uint64_t)SIGRTMAX - 1);
    assert_takes("DUMP_SIGNAL", "RTMIN+30", dump_signal, (uint64_t)SIGRTMAX);
    assert_takes("DUMP_SIGNAL", "RTMAX-30", dump_signal, (uint64_t)SIGRTMIN);
    assert_takes("DUMP_SIGNAL", "64", dump_signal, 64);
}

static void what_cannot_be_a_dump_signal_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "KILL", "SIGKILL", "9", "STOP", "19", "0", "32", "33", "65", "-1", "RTMIN+31", "RTMAX-31",
        "RTMIN-1", "RTMAX+1", "RTMIN+", "RTMIN3", "RTMIN+18446744073709551615", "RTM", "SIG",
        "SIG15", "SIGSIGTERM", "TERM ", "USR", "USR22", "USR1,USR2", "BOGUS"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("DUMP_SIGNAL", bad[i], "not KILL or STOP");
}

static void exit_signals_are_a_set(void **state)
{
    (void)state;
    assert_takes("EXIT_SIGNALS", "TERM", exit_signals, BIT(SIGTERM));
    assert_takes("EXIT_SIGNALS", "TERM,SIGINT,1", exit_signals,
                 BIT(SIGTERM) | BIT(SIGINT) | BIT(SIGHUP));
    assert_takes("EXIT_SIGNALS", "TERM,TERM", exit_signals, BIT(SIGTERM));
    assert_takes("EXIT_SIGNALS", "RTMAX", exit_signals, UINT64_C(1) << 63);
}

static void exit_signals_that_end_nothing_or_cannot_be_caught_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "KILL", "STOP",  "CHLD", "CONT",  "TSTP",       "TTIN", "TTOU", "URG",       "WINCH",
        "17",   "none",  ",",    ",TERM", "TERM,,INT",  "TERM,KILL", "TERM INT",  "0"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("EXIT_SIGNALS", bad[i], "a comma list of signals that end a program");
}

static void every_signal_name_means_what_the_system_means(void **state)
{
    (void)state;
    for (int number = 1; number < 32; number++) {
        char name[32];
        snprintf(name, sizeof name, "SIG%s", sigabbrev_np(number));
        assert_int_equal(signal_number(name, strlen(name)), number);
        assert_int_equal(signal_number(name + 3, strlen(name) - 3), number);
    }
}

/* ---- labels ---- */

static int n_labels_read;
static struct label_text labels_read[LABELS_MAX + 1];

static bool read_labels(const char *text)
{
    bool is_bad;
    n_labels_read = 0;
    while (n_labels_read <= LABELS_MAX &&
           label_text_next(&text, &labels_read[n_labels_read], &is_bad))
        n_labels_read++;
    return !is_bad;
}

static void assert_label(int index, const char *key, const char *value)
{
    assert_string_equal(labels_read[index].key, key);
    assert_string_equal(labels_read[index].value, value);
    assert_int_equal(labels_read[index].key_bytes, strlen(key));
    assert_int_equal(labels_read[index].value_bytes, strlen(value));
}

static void labels_are_key_value_pairs_decoded_from_percent(void **state)
{
    (void)state;
    assert_true(read_labels("service=shop,re%67ion=eu%2Cwest%3d1%25,%3D=%C3%a9"));
    assert_int_equal(n_labels_read, 3);
    assert_label(0, "service", "shop");
    assert_label(1, "region", "eu,west=1%");
    assert_label(2, "=", "\xC3\xA9");
}

static void labels_may_repeat_a_key_and_have_empty_values(void **state)
{
    (void)state;
    assert_true(parse_value("LABELS", "a=1,a=2,b="));
    assert_true(read_labels(parsed.labels));
    assert_int_equal(n_labels_read, 3);
    assert_label(1, "a", "2");
    assert_label(2, "b", "");
}

static void labels_with_a_flaw_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"a",      "=b",    "a=%",     "a=%1",     "a=%1g", "a=%g1",
                                      "%=b",    "a=1,b", ",a=1",    "a=1,,b=2", "a%3Db",
                                      "pprof::a=1", "pprof%3A:=1"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++)
        assert_refuses("LABELS", bad[i], "percent-encoded");
}

static void label_keys_have_up_to_64_bytes(void **state)
{
    (void)state;
    char text[80];
    snprintf(text, sizeof text, "%064d=v", 7);
    assert_true(parse_value("LABELS", text));
    assert_true(read_labels(text));
    assert_int_equal(labels_read[0].key_bytes, 64);
    snprintf(text, sizeof text, "%065d=v", 7);
    assert_refuses("LABELS", text, "keys of 1 to 64 bytes");
}

static void long_label_values_are_cut_at_a_character(void **state)
{
    (void)state;
    char text[1024] = "k=";
    memset(text + 2, 'x', 255);
    strcpy(text + 2 + 255, "%C3%A9tail");
    assert_true(parse_value("LABELS", text));
    assert_true(read_labels(text));
    assert_int_equal(labels_read[0].value_bytes, 255);
    assert_int_equal(strlen(labels_read[0].value), 255);
    text[2 + 254] = '\0';
    strcat(text, "%C3%A9tail");
    assert_true(read_labels(text));
    assert_int_equal(labels_read[0].value_bytes, 256);
    assert_memory_equal(labels_read[0].value + 254, "\xC3\xA9", 3);
}

static void at_most_32_labels_are_taken(void **state)
{
    (void)state;
    char text[512] = "";
    for (int i = 0; i < LABELS_MAX; i++)
        sprintf(text + strlen(text), "%sk%d=v", i ? "," : "", i);
    assert_true(parse_value("LABELS", text));
    strcat(text, ",one=more");
    assert_refuses("LABELS", text, "at most 32");
}

/* ---- texts ---- */

static void texts_are_copied_whole_or_refused(void **state)
{
    (void)state;
    static char text[OPTION_TEXT_BYTES + 1];
    assert_true(parse_value("OUT", "/var/tmp/%e.%%"));
    assert_string_equal(parsed.out, "/var/tmp/%e.%%");
    assert_true(parse_value("LABEL_KEYS", "a,b"));
    assert_string_equal(parsed.label_keys, "a,b");
    memset(text, 'x', OPTION_TEXT_BYTES - 1);
    assert_true(parse_value("OUT", text));
    assert_string_equal(parsed.out, text);
    text[OPTION_TEXT_BYTES - 1] = 'x';
    assert_false(parse_value("OUT", text));
    assert_non_null(strstr(error, "LABELPROF_OUT=xxx"));
    assert_non_null(strstr(error, "a path with %e %p %t %n %h %%"));
}

static void features_of_later_versions_are_refused(void **state)
{
    (void)state;
    size_t n_later = 0;
    for (size_t i = 0; i < n_option_rows; i++) {
        if (option_rows[i].kind != OPTION_LATER)
            continue;
        n_later++;
        assert_refuses(option_rows[i].name + strlen("LABELPROF_"), "1",
                       "this version does not have it");
    }
    assert_true(n_later > 0);
}

static void variables_that_do_not_exist_are_refused(void **state)
{
    (void)state;
    assert_refuses("SAMPLE_BITES", "1", "no such variable");
    assert_refuses("SAMPLE", "1", "no such variable");
    assert_refuses("SAMPLE_BYTES_", "1", "no such variable");
    assert_refuses("", "1", "no such variable");
    assert_true(parse("LABELPROF_BOGUS="));
    assert_true(parse("LABELPROF_SAMPLE_BYTES")); /* no '=': no variable at all */
    assert_true(parse("LABELPROFX_SAMPLE_BYTES=bogus"));
    assert_true(parse("labelprof_sample_bytes=bogus"));
}

static void a_bad_value_is_shown_in_one_line_whatever_it_holds(void **state)
{
    (void)state;
    assert_false(parse_value("VERBOSE", "a\nlabelprof: all is well\r\t\x1b[2J"));
    for (const char *at = error; *at; at++)
        if ((unsigned char)*at < 0x20)
            fail_msg("control character %d in: %s", *at, error);
    static char text[2000];
    memset(text, 'z', sizeof text - 1);
    assert_false(parse_value("VERBOSE", text));
    assert_non_null(strstr(error, "LABELPROF_VERBOSE=zzz"));
    assert_non_null(strstr(error, "0 or 1"));
}

static void the_first_flaw_is_the_one_that_is_named(void **state)
{
    (void)state;
    char *environment[] = {(char *)"LABELPROF_CYCLE_MS=20", (char *)"LABELPROF_VERBOSE=x",
                           (char *)"LABELPROF_DISABLE=y", NULL};
    assert_false(options_parse(&parsed, environment, error, sizeof error));
    assert_non_null(strstr(error, "LABELPROF_VERBOSE=x"));
    assert_null(strstr(error, "DISABLE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_variables_every_option_has_its_default),
        cmocka_unit_test(an_empty_value_is_the_default_for_every_variable),
        cmocka_unit_test(every_default_is_a_value_its_variable_takes),
        cmocka_unit_test(sizes_are_whole_numbers_with_a_unit_in_either_case),
        cmocka_unit_test(sizes_that_are_none_or_out_of_bounds_are_refused),
        cmocka_unit_test(numbers_are_taken_up_to_both_bounds_and_no_further),
        cmocka_unit_test(numbers_with_anything_but_digits_are_refused),
        cmocka_unit_test(switches_are_0_or_1),
        cmocka_unit_test(choices_are_any_subset_in_any_order),
        cmocka_unit_test(choices_that_do_not_exist_are_refused),
        cmocka_unit_test(a_comma_after_the_last_item_is_no_item),
        cmocka_unit_test(a_dump_signal_is_a_name_or_a_number),
        cmocka_unit_test(what_cannot_be_a_dump_signal_is_refused),
        cmocka_unit_test(exit_signals_are_a_set),
        cmocka_unit_test(exit_signals_that_end_nothing_or_cannot_be_caught_are_refused),
        cmocka_unit_test(every_signal_name_means_what_the_system_means),
        cmocka_unit_test(labels_are_key_value_pairs_decoded_from_percent),
        cmocka_unit_test(labels_may_repeat_a_key_and_have_empty_values),
        cmocka_unit_test(labels_with_a_flaw_are_refused),
        cmocka_unit_test(label_keys_have_up_to_64_bytes),
        cmocka_unit_test(long_label_values_are_cut_at_a_character),
        cmocka_unit_test(at_most_32_labels_are_taken),
        cmocka_unit_test(texts_are_copied_whole_or_refused),
        cmocka_unit_test(features_of_later_versions_are_refused),
        cmocka_unit_test(variables_that_do_not_exist_are_refused),
        cmocka_unit_test(a_bad_value_is_shown_in_one_line_whatever_it_holds),
        cmocka_unit_test(the_first_flaw_is_the_one_that_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
