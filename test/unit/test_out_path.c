/* SPDX-License-Identifier: MIT
 * LABELPROF_OUT: what the template becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "publish/out_path.h"

static char out[PATH_MAX];
static char start_directory[PATH_MAX], program[PATH_MAX];

static const char *expand(const char *template)
{
    snprintf(options.out, sizeof options.out, "%s", template);
    assert_int_equal(out_path_expand("heap", 3, out, sizeof out), 0);
    return out;
}

static void every_letter_stands_for_its_thing(void **state)
{
    (void)state;
    char expected[PATH_MAX + 100], host[256];
    gethostname(host, sizeof host);
    assert_string_equal(expand("/x/%t"), "/x/heap");
    assert_string_equal(expand("/x/%n"), "/x/3");
    snprintf(expected, sizeof expected, "/%d", (int)getpid());
    assert_string_equal(expand("/%p"), expected);
    snprintf(expected, sizeof expected, "/%.64s", host);
    assert_string_equal(expand("/%h"), expected);
    snprintf(expected, sizeof expected, "/%s", program);
    assert_string_equal(expand("/%e"), expected);
    assert_string_equal(expand("/%t%t-%n%n%%t"), "/heapheap-33%t");
}

static void what_is_no_letter_stays(void **state)
{
    (void)state;
    assert_string_equal(expand("/a%%"), "/a%");
    assert_string_equal(expand("/\xC3\xA9 b"), "/\xC3\xA9 b");
}

static void a_relative_path_counts_from_the_directory_at_start(void **state)
{
    (void)state;
    char expected[PATH_MAX + 100];
    snprintf(expected, sizeof expected, "%s/sub/heap", start_directory);
    assert_string_equal(expand("sub/%t"), expected);
    assert_int_equal(chdir("/"), 0);
    assert_string_equal(expand("sub/%t"), expected);
    assert_string_equal(expand("/abs/%t"), "/abs/heap");
    assert_int_equal(chdir(start_directory), 0);
}

static void a_path_that_does_not_fit_is_an_error_and_not_another_path(void **state)
{
    (void)state;
    strcpy(options.out, "/0123456789/%t");
    const size_t needed = strlen("/0123456789/heap") + 1;
    char *exact = malloc(needed); /* a sanitizer sees one byte more */
    assert_int_equal(out_path_expand("heap", 1, exact, needed), 0);
    assert_string_equal(exact, "/0123456789/heap");
    for (size_t capacity = 1; capacity < needed; capacity++)
        assert_int_equal(out_path_expand("heap", 1, exact, capacity), -ENAMETOOLONG);
    free(exact);
}

static void a_long_template_of_letters_is_cut_nowhere_unseen(void **state)
{
    (void)state;
    options.out[0] = '/';
    for (int i = 0; i < 2000; i++)
        memcpy(options.out + 1 + 2 * i, "%t", 3);
    assert_int_equal(out_path_expand("heap", 1, out, sizeof out), -ENAMETOOLONG);
}

static int open_names(void **state)
{
    (void)state;
    assert_non_null(getcwd(start_directory, sizeof start_directory));
    snprintf(program, sizeof program, "%s", program_invocation_short_name);
    out_path_open();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_letter_stands_for_its_thing),
        cmocka_unit_test(what_is_no_letter_stays),
        cmocka_unit_test(a_relative_path_counts_from_the_directory_at_start),
        cmocka_unit_test(a_path_that_does_not_fit_is_an_error_and_not_another_path),
        cmocka_unit_test(a_long_template_of_letters_is_cut_nowhere_unseen),
    };
    return cmocka_run_group_tests(tests, open_names, NULL);
}
