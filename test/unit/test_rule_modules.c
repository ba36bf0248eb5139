/* SPDX-License-Identifier: MIT
 * Rules compiled for a module: functions in any order, nested, under several names; and the bound
 * on what is remembered of them. */
#include "ledger_fixture.h"

#include "labels/rule_modules.h"

enum { START = 0x10000, LIMIT = 0x20000 };

static struct label_rules *rules;
static struct rule_index rules_index;
static struct rules_in_use in_use;

static void parse(const char *text)
{
    struct rule_error error;
    rules = calloc(1, sizeof *rules);
    strcpy(rules->text, text);
    if (!rule_file_parse(rules, strlen(text), &error))
        fail_msg("%u:%u: %s", error.line, error.column, error.what);
    rule_index_build(&rules_index, rules);
    in_use = (struct rules_in_use){rules, &rules_index};
}

/* ---- functions from a list ---- */

struct list {
    const struct function_name *functions;
    size_t n, at, n_after_rewind; /* the last: how many a second pass finds */
    unsigned n_passes;
};

static bool next_of_list(void *context, struct function_name *ret)
{
    struct list *list = context;
    if (list->at == (list->n_passes > 1 ? list->n_after_rewind : list->n))
        return false;
    *ret = list->functions[list->at++];
    ret->n_bytes = strlen(ret->name);
    return true;
}

static void rewind_list(void *context)
{
    struct list *list = context;
    list->at = 0;
    list->n_passes++;
}

static const struct rule_module *compile(const char *path, const struct function_name *functions,
                                         size_t n)
{
    struct list list = {.functions = functions, .n = n, .n_after_rewind = n};
    struct function_source source = {next_of_list, rewind_list, &list};
    struct rule_module_range range = {START, LIMIT, path};
    const struct rule_module *module = rule_module_compile(&in_use, &range, &source);
    assert_non_null(module);
    return module;
}

#define FUNCTION(name, from, to) {START + (from), START + (to), name, 0}

/* The rules that win for one frame, as digits. */
static const char *at(const struct rule_module *module, uintptr_t offset)
{
    static char text[RULE_KEYS_MAX + 1];
    struct rule_choice choice = {.settled = 0};
    uint16_t chosen[RULE_KEYS_MAX];
    rule_module_offer(module, rules, offset, &choice);
    unsigned n = rule_choice_list(&choice, chosen);
    for (unsigned i = 0; i < n; i++)
        text[i] = (char)('0' + chosen[i]);
    text[n] = '\0';
    return text;
}

static void a_frame_belongs_to_the_function_that_covers_it(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function first\na=1 function second\n");
    const struct function_name functions[] = {FUNCTION("second", 0x200, 0x300),
                                              FUNCTION("other", 0x180, 0x200),
                                              FUNCTION("first", 0x100, 0x180)};
    const struct rule_module *module = compile("/lib/m.so", functions, 3);
    assert_string_equal(at(module, 0xff), "");
    assert_string_equal(at(module, 0x100), "0");
    assert_string_equal(at(module, 0x17f), "0");
    assert_string_equal(at(module, 0x180), "");
    assert_string_equal(at(module, 0x200), "1");
    assert_string_equal(at(module, 0x2ff), "1");
    assert_string_equal(at(module, 0x300), "");
}

static void every_name_and_every_function_around_counts(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function alias\na=1 function inner\na=2 function outer\nb=3 function outer\n");
    const struct function_name functions[] = {
        FUNCTION("outer", 0x100, 0x200), FUNCTION("inner", 0x140, 0x150),
        FUNCTION("__alias", 0x140, 0x150), FUNCTION("alias", 0x140, 0x150)};
    const struct rule_module *module = compile("/lib/m.so", functions, 4);
    assert_string_equal(at(module, 0x120), "23");
    assert_string_equal(at(module, 0x144), "03"); /* of one key the first in the file */
    assert_string_equal(at(module, 0x180), "23"); /* beyond the inner one */
    assert_string_equal(at(module, 0x200), "");
}

static void rules_for_a_module_take_all_its_frames(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function f\na=1 module libm.so*\nb=2 module other.so\na=3 module *\n"
          "c=4 function f module other.so\nc=5 function f module libm.so.6\n");
    const struct function_name functions[] = {FUNCTION("f", 0x100, 0x200)};
    const struct rule_module *module = compile("/other.so/libm.so.6", functions, 1);
    assert_string_equal(at(module, 0x100), "05");
    assert_string_equal(at(module, 0x200), "1");
    module = compile("/lib/other.so", functions, 1);
    assert_string_equal(at(module, 0x100), "024");
    assert_string_equal(at(module, 0x0), "32");
}

static void what_lies_outside_the_module_is_left_out(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function *\n");
    const struct function_name functions[] = {
        {START - 0x10, START + 0x10, "before", 0}, {LIMIT - 0x10, LIMIT + 0x10, "after", 0},
        {0, 0x10, "absolute", 0}, FUNCTION("inside", 0xff0, 0x1000), {LIMIT, LIMIT + 1, "at", 0}};
    const struct rule_module *module = compile("/lib/m.so", functions, 5);
    assert_string_equal(at(module, 0), "");
    assert_string_equal(at(module, 0xfff), "0");
    assert_string_equal(at(module, LIMIT - START - 1), "");
}

static void keys_nobody_wants_are_left_out(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function f\nb=1 function f\nb=2 module *\n");
    rules->keys[1].is_wanted = false;
    const struct function_name functions[] = {FUNCTION("f", 0x100, 0x200)};
    assert_string_equal(at(compile("/lib/m.so", functions, 1), 0x100), "0");
}

/* Against a plain scan over all functions. */
static void a_thousand_random_functions_are_found_as_a_scan_finds_them(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function f1*\nb=1 function f*2\na=2 function f*\n");
    enum { N = 1000 };
    static struct function_name functions[N];
    static char names[N][16];
    uint64_t random = 42;
    for (unsigned i = 0; i < N; i++) {
        uintptr_t start = START + next_random(&random) % (LIMIT - START - 0x200);
        snprintf(names[i], sizeof names[i], "%c%u", i % 3 ? 'f' : 'g', i);
        functions[i] = (struct function_name){start, start + 1 + next_random(&random) % 0x100,
                                              names[i], 0};
    }
    const struct rule_module *module = compile("/lib/m.so", functions, N);
    unsigned n_found = 0;
    for (uintptr_t offset = 0; offset < LIMIT - START; offset += 7) {
        struct rule_choice scan = {.settled = 0}, found = {.settled = 0};
        for (unsigned i = 0; i < N; i++)
            for (unsigned rule = 0; rule < rules->n_rules; rule++)
                if (functions[i].start <= START + offset && functions[i].limit > START + offset &&
                    rule_takes_function(rules, &rules->rules[rule], names[i], strlen(names[i])))
                    rule_choice_offer(&scan, rules, rule);
        rule_module_offer(module, rules, offset, &found);
        assert_memory_equal(&found, &scan, sizeof scan);
        n_found += scan.best[0] != 0;
    }
    assert_true(n_found > 1000);
}

/* Against every pattern of every rule. */
static void a_thousand_random_patterns_are_found_as_a_scan_finds_them(void **state)
{
    (void)state;
    static char text[1 << 16];
    size_t n = 0;
    uint64_t random = 3;
    for (unsigned i = 0; i < 1000; i++) {
        char pattern[9];
        unsigned n_bytes = 1 + next_random(&random) % 8;
        for (unsigned j = 0; j < n_bytes; j++)
            pattern[j] = "abab*?"[next_random(&random) % (j < 2 ? 4 : 6)];
        pattern[n_bytes] = '\0';
        n += (size_t)sprintf(text + n, "k%u=%u function %s\n", i % 30, i, i % 97 ? pattern : "*");
    }
    parse(text);
    static bool is_allowed[LABEL_RULES_MAX];
    for (unsigned i = 0; i < rules->n_rules; i++)
        is_allowed[i] = i % 7 != 0;
    unsigned n_taken = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct rule_choice scan = {.settled = 0}, found = {.settled = 0};
        char name[12];
        unsigned n_bytes = next_random(&random) % 12;
        for (unsigned j = 0; j < n_bytes; j++)
            name[j] = "abc"[next_random(&random) % 3];
        for (unsigned rule = 0; rule < rules->n_rules; rule++)
            if (is_allowed[rule] &&
                rule_takes_function(rules, &rules->rules[rule], name, n_bytes))
                rule_choice_offer(&scan, rules, rule);
        n_taken += rule_index_offer(&rules_index, rules, is_allowed, name, n_bytes, &found);
        assert_memory_equal(&found, &scan, sizeof scan);
    }
    assert_int_equal(n_taken, 20000); /* "*" is among them */
    memset(is_allowed, 0, sizeof is_allowed);
    struct rule_choice none = {.settled = 0};
    assert_false(rule_index_offer(&rules_index, rules, is_allowed, "ab", 2, &none));
}

static void a_file_that_changes_between_two_looks_does_no_harm(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=16m", NULL);
    parse("a=0 function f\n");
    const struct function_name functions[] = {FUNCTION("f", 0x100, 0x200),
                                              FUNCTION("f", 0x300, 0x400),
                                              FUNCTION("f", 0x500, 0x600)};
    for (size_t n_second = 0; n_second <= 3; n_second++) {
        struct list list = {.functions = functions, .n = 2, .n_after_rewind = n_second};
        struct function_source source = {next_of_list, rewind_list, &list};
        struct rule_module_range range = {START, LIMIT, "m"};
        const struct rule_module *module = rule_module_compile(&in_use, &range, &source);
        assert_string_equal(at(module, 0x100), n_second > 0 ? "0" : "");
        assert_string_equal(at(module, 0x300), n_second > 1 ? "0" : "");
        assert_string_equal(at(module, 0x500), "");
    }
}

/* ---- memory ---- */

struct endless {
    uint32_t n, at;
};

static bool next_endless(void *context, struct function_name *ret)
{
    struct endless *endless = context;
    if (endless->at == endless->n)
        return false;
    uintptr_t start = START + endless->at % 0x8000;
    *ret = (struct function_name){start, start + 1, "f", 1};
    endless->at++;
    return true;
}

static void rewind_endless(void *context)
{
    ((struct endless *)context)->at = 0;
}

static void a_module_without_room_keeps_its_module_rules(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", NULL);
    parse("a=0 function f\nb=1 module m\n");
    struct endless endless = {.n = 1 << 20};
    struct function_source source = {next_endless, rewind_endless, &endless};
    struct rule_module_range range = {START, LIMIT, "m"};
    region_take(REGION_KEEP, 16); /* from the first one on the region counts what is fixed */
    size_t before = region_used_bytes(REGION_KEEP);
    const struct rule_module *module = rule_module_compile(&in_use, &range, &source);
    assert_non_null(module);
    assert_string_equal(at(module, 0x100), "1");
    assert_int_equal(rule_modules_skipped(), 1);
    assert_true(region_used_bytes(REGION_KEEP) - before < 4096);
    endless.n = 1000;
    module = rule_module_compile(&in_use, &range, &source);
    assert_string_equal(at(module, 0x100), "01");
    assert_int_equal(rule_modules_skipped(), 1);
}

static void without_any_memory_there_is_no_module(void **state)
{
    (void)state;
    ledger_open("LABELPROF_MAX_MEMORY=1m", NULL);
    parse("a=0 function f\n");
    struct endless endless = {.n = 1};
    struct function_source source = {next_endless, rewind_endless, &endless};
    struct rule_module_range range = {START, LIMIT, "m"};
    while (region_take(REGION_KEEP, 16))
        continue;
    assert_null(rule_module_compile(&in_use, &range, &source));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_belongs_to_the_function_that_covers_it),
        cmocka_unit_test(every_name_and_every_function_around_counts),
        cmocka_unit_test(rules_for_a_module_take_all_its_frames),
        cmocka_unit_test(what_lies_outside_the_module_is_left_out),
        cmocka_unit_test(keys_nobody_wants_are_left_out),
        cmocka_unit_test(a_thousand_random_functions_are_found_as_a_scan_finds_them),
        cmocka_unit_test(a_thousand_random_patterns_are_found_as_a_scan_finds_them),
        cmocka_unit_test(a_file_that_changes_between_two_looks_does_no_harm),
        cmocka_unit_test(a_module_without_room_keeps_its_module_rules),
        cmocka_unit_test(without_any_memory_there_is_no_module),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
