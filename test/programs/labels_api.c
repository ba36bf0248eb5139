/* SPDX-License-Identifier: MIT
 * The label calls, one state of the labels to a function leaking one object of 100 B; the test
 * says which labels each must have. Argument "absent": the library isn't there, all calls say so. */
#include <string.h>
#include "labelprof.h"
#include "common.h"

#define LEAK(name)                      \
    static NOINLINE void name(void)     \
    {                                   \
        keep(malloc(100));              \
    }
LEAK(no_labels)
LEAK(one_label)
LEAK(replaced)
LEAK(number)
LEAK(number_over_text)
LEAK(text_over_number)
LEAK(after_unset)
LEAK(empty_value)
LEAK(in_scope)
LEAK(in_inner_scope)
LEAK(after_inner_scope)
LEAK(after_scope)
LEAK(captured_elsewhere)
LEAK(after_attach)
LEAK(after_attach_null)
LEAK(long_value)
LEAK(bad_utf8)
LEAK(thirty_two)
LEAK(key_64)

static char long_text[400];

static void set_and_replace(void)
{
    no_labels();
    CHECK(labelprof_set("tenant", "acme") == 0);
    one_label();
    CHECK(labelprof_set("tenant", "globex") == 0);
    replaced();
    CHECK(labelprof_set_num("rows", 12345, "rows") == 0);
    number();
    CHECK(labelprof_set_num("tenant", -7, NULL) == 0);
    number_over_text();
    CHECK(labelprof_set("rows", "many") == 0);
    text_over_number();
    CHECK(labelprof_unset("rows") == 0 && labelprof_unset("tenant") == 0);
    CHECK(labelprof_unset("never set") == 0);
    after_unset();
    CHECK(labelprof_set("tenant", "acme") == 0);
    CHECK(labelprof_set("tenant", "") == 0);
    empty_value();
}

static void scopes(void)
{
    labelprof_set("phase", "outer");
    {
        LABELPROF_SCOPE("phase", "scope");
        in_scope();
        {
            LABELPROF_SCOPE("phase", "inner");
            LABELPROF_SCOPE("step", "one");
            in_inner_scope();
        }
        after_inner_scope();
    }
    after_scope();
    labelprof_unset("phase");
}

static void captures(void)
{
    labelprof_labels *none, *two;
    none = labelprof_capture();
    labelprof_set("a", "1");
    labelprof_set_num("b", 2, "widgets");
    two = labelprof_capture();
    CHECK(two);
    labelprof_unset("a");
    labelprof_set("c", "3");
    captured_elsewhere();
    CHECK(labelprof_attach(two) == 0);
    labelprof_release(two); /* the thread keeps what is attached */
    after_attach();
    CHECK(labelprof_attach(NULL) == 0);
    after_attach_null();
    labelprof_release(none);
    labelprof_release(NULL);
}

static void limits(void)
{
    char key[80];
    memset(key, 'k', sizeof key);
    key[65] = 0;
    CHECK(labelprof_set(key, "v") == -1);
    key[64] = 0;
    CHECK(labelprof_set(key, "v") == 0);
    key_64();
    CHECK(labelprof_unset(key) == 0);
    CHECK(labelprof_set("", "v") == -1);
    CHECK(labelprof_set(NULL, "v") == -1);
    CHECK(labelprof_set("pprof::x", "v") == -1);
    CHECK(labelprof_set_num("bytes", 5, "bytes") == -1);
    for (int i = 0; i < 399; i += 3)
        memcpy(long_text + i, "\xe2\x82\xac", 3); /* euro signs: 256 is no boundary */
    CHECK(labelprof_set("long", long_text) == 0);
    long_value();
    labelprof_unset("long");
    CHECK(labelprof_set("bad", "ok\xff\xc3(\xed\xa0\x80.") == 0);
    bad_utf8();
    labelprof_unset("bad");
    for (int i = 0; i < 32; i++) {
        snprintf(key, sizeof key, "k%02d", i);
        CHECK(labelprof_set(key, "v") == 0);
    }
    CHECK(labelprof_set("k32", "v") == -1);
    CHECK(labelprof_set_num("k32", 1, NULL) == -1);
    CHECK(labelprof_set("k31", "w") == 0);
    thirty_two();
    labelprof_attach(NULL);
}

static int absent(void)
{
    CHECK(labelprof_set("k", "v") == -1 && labelprof_set_num("k", 1, "u") == -1);
    CHECK(labelprof_unset("k") == -1 && !labelprof_capture() && labelprof_attach(NULL) == -1);
    CHECK(labelprof_dump("heap", NULL) == -1 && labelprof_dump("heap", "never.pb.gz") == -1);
    labelprof_release(NULL);
    {
        LABELPROF_SCOPE("k", "v");
    }
    puts("absent");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "absent"))
        return absent();
    set_and_replace();
    scopes();
    captures();
    limits();
    return 0;
}
