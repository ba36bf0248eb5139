/* SPDX-License-Identifier: MIT
 * Labels from OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, BAGGAGE and TRACEPARENT. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "labels/environment.h"

static char found[8192];

static void note(void *context, const struct label_text *label)
{
    (void)context;
    assert_int_equal(strlen(label->key), label->key_bytes);
    size_t n = strlen(found);
    snprintf(found + n, sizeof found - n, "%s=%.*s;", label->key, (int)label->value_bytes,
             label->value);
}

static const char *labels_of(const char *a, const char *b)
{
    char *environment[] = {strdup(a), b ? strdup(b) : NULL, NULL};
    found[0] = '\0';
    environment_labels(environment, note, NULL);
    free(environment[0]);
    free(environment[1]);
    return found;
}

static void the_service_is_plain_text(void **state)
{
    (void)state;
    assert_string_equal(labels_of("OTEL_SERVICE_NAME=a,b=100%25", NULL), "service_name=a,b=100%25;");
    assert_string_equal(labels_of("OTEL_SERVICE_NAME=", "OTEL_SERVICE_NAMES=x"), "");
}

static void the_service_comes_before_the_attributes(void **state)
{
    (void)state;
    assert_string_equal(labels_of("OTEL_RESOURCE_ATTRIBUTES=service.name=b", "OTEL_SERVICE_NAME=a"),
                        "service_name=a;service_name=b;");
}

static void members_are_trimmed_decoded_and_stripped_of_properties(void **state)
{
    (void)state;
    assert_string_equal(labels_of("BAGGAGE= a.b\t= x%20y%2c ;p=1;q , c%3D=%C3%A4,d==", NULL),
                        "a_b=x y,;c==ä;d==;");
}

static void members_that_are_none_are_passed_over(void **state)
{
    (void)state;
    char long_key[128];
    memset(long_key, 'k', sizeof long_key);
    memcpy(long_key, "BAGGAGE=", 8);
    memcpy(long_key + 8 + 65, "=v", 3);
    assert_string_equal(labels_of(long_key, NULL), "");
    memcpy(long_key + 8 + 64, "=v", 3);
    assert_int_equal(strlen(labels_of(long_key, NULL)), 64 + 3);
    const char *bad[] = {"BAGGAGE=", "BAGGAGE=,,,", "BAGGAGE==v", "BAGGAGE=a", "BAGGAGE=a=",
                         "BAGGAGE=a=%", "BAGGAGE=a=%4", "BAGGAGE=a=%g0", "BAGGAGE=%00=v",
                         "BAGGAGE=pprof::a=v", "BAGGAGE=%70prof::a=v", "BAGGAGE= = ;", "BAGGAGE=a;b=c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(labels_of(bad[i], NULL), "");
}

static void values_are_cut_at_a_character(void **state)
{
    (void)state;
    char text[4000] = "BAGGAGE=a=x";
    for (int i = 0; i < 200; i++)
        strcat(text, "%C3%A4");
    assert_int_equal(strlen(labels_of(text, NULL)), 2 + 255 + 1);
    memcpy(text, "OTEL_SERVICE_NAME=", 18);
    memset(text + 18, 'x', sizeof text - 19);
    assert_int_equal(strlen(labels_of(text, NULL)), 13 + 256 + 1);
}

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void a_trace_parent_gives_its_trace_id(void **state)
{
    (void)state;
    assert_string_equal(labels_of("TRACEPARENT=00-" TRACE "-" SPAN "-01", NULL), "trace_id=" TRACE ";");
    assert_string_equal(labels_of("TRACEPARENT=cc-" TRACE "-" SPAN "-01-more", NULL),
                        "trace_id=" TRACE ";");
}

static void what_is_no_trace_parent_gives_none(void **state)
{
    (void)state;
    const char *bad[] = {
        "TRACEPARENT=", "TRACEPARENT=00", "TRACEPARENT=00-" TRACE "-" SPAN "-0",
        "TRACEPARENT=00-" TRACE "-" SPAN "-01-more", "TRACEPARENT=cc-" TRACE "-" SPAN "-01.more",
        "TRACEPARENT=ff-" TRACE "-" SPAN "-01", "TRACEPARENT=00_" TRACE "-" SPAN "-01",
        "TRACEPARENT=00-0AF7651916cd43dd8448eb211c80319c-" SPAN "-01",
        "TRACEPARENT=00-00000000000000000000000000000000-" SPAN "-01",
        "TRACEPARENT=00-" TRACE "-0000000000000000-01", "TRACEPARENT=0x-" TRACE "-" SPAN "-01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(labels_of(bad[i], NULL), "");
}

static void noise_is_survived(void **state)
{
    (void)state;
    uint32_t random = 7;
    for (int round = 0; round < 5000; round++) {
        char text[300] = "BAGGAGE=";
        for (size_t i = 8; i < sizeof text - 1; i++) {
            random = random * 1664525 + 1013904223;
            text[i] = "ab%=;, \t.\xC3\xA4""09"[(random >> 24) % 13];
        }
        labels_of(text, NULL);
        memcpy(text, "TRACEPARENT=", 12);
        labels_of(text, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_service_is_plain_text),
        cmocka_unit_test(the_service_comes_before_the_attributes),
        cmocka_unit_test(members_are_trimmed_decoded_and_stripped_of_properties),
        cmocka_unit_test(members_that_are_none_are_passed_over),
        cmocka_unit_test(values_are_cut_at_a_character),
        cmocka_unit_test(a_trace_parent_gives_its_trace_id),
        cmocka_unit_test(what_is_no_trace_parent_gives_none),
        cmocka_unit_test(noise_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
