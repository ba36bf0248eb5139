/* SPDX-License-Identifier: MIT
 * For the tests of what lives in the regions: each test is a process of its own, which lays the
 * regions out as session.c does; so every ledger is fresh, of the size the test asks for. */
#ifndef LABELPROF_TEST_LEDGER_FIXTURE_H
#define LABELPROF_TEST_LEDGER_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/region.h"
#include "base/thread.h"
#include "labels/current.h"
#include "labels/gather.h"
#include "labels/sets.h"
#include "publish/dump.h"
#include "publish/flusher.h"
#include "record/book.h"
#include "record/cycle.h"
#include "record/records.h"
#include "record/specials.h"
#include "record/stacks.h"
#include "sample/sample.h"

#define UNUSED __attribute__((unused))

/* Live samples by the filter's own counts, over all places in a page. */
static UNUSED uint32_t filter_count(void)
{
    uint32_t n = 0;
    for (size_t i = 0; i < FILTER_PLACES; i++)
        n += filter.n_at[i];
    return n;
}

/* Options from NAME=value strings up to a NULL, then the regions in session.c's order. */
static UNUSED __attribute__((sentinel)) void ledger_open(const char *variable, ...)
{
    char *environment[16] = {NULL};
    char error[512];
    va_list more;
    va_start(more, variable);
    for (int n = 0; variable; variable = va_arg(more, const char *))
        environment[n++] = (char *)(uintptr_t)variable;
    va_end(more);
    if (!options_parse(&options, environment, error, sizeof error))
        fail_msg("%s", error);
    assert_true(region_open(options.max_memory, options.max_memory / 4 + (4u << 20)));
    assert_true(book_open() && cycle_open() && sample_open() && current_open() && gather_open() &&
                dump_open() && flusher_open());
}

/* Runs each test in a child; 0 if all passed. */
static UNUSED int run_each_in_a_child(const struct CMUnitTest *tests, size_t n_tests)
{
    int n_failed = 0;
    for (size_t i = 0; i < n_tests; i++) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            const struct CMUnitTest only[] = {tests[i]};
            exit(cmocka_run_group_tests_name(tests[i].name, only, NULL, NULL));
        }
        int status = -1;
        waitpid(child, &status, 0);
        n_failed += status != 0;
        if (WIFSIGNALED(status))
            printf("%s: signal %d\n", tests[i].name, WTERMSIG(status));
    }
    return n_failed;
}

/* Forks; the check runs in the child, which a hang ends. */
static UNUSED void assert_true_in_a_fork(bool (*check)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(30);
        _exit(check() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

/* A reproducible choice: splitmix64. */
static UNUSED uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* ---- label sets as bytes; keys are added in order ---- */

struct label_bytes {
    size_t n_bytes;
    unsigned char bytes[LABEL_SET_BYTES_MAX];
};

static UNUSED void add_label(struct label_bytes *set, const char *key, const char *value,
                             bool is_variable)
{
    struct label_head head = {.kind = LABEL_TEXT,
                              .is_variable = is_variable,
                              .key_bytes = (uint8_t)strlen(key),
                              .value_bytes = (uint16_t)strlen(value)};
    memcpy(set->bytes + set->n_bytes, &head, sizeof head);
    set->n_bytes += sizeof head;
    memcpy(set->bytes + set->n_bytes, key, head.key_bytes);
    set->n_bytes += head.key_bytes;
    memcpy(set->bytes + set->n_bytes, value, head.value_bytes);
    set->n_bytes += head.value_bytes;
}

/* One variable label "request" and one of the process. */
static UNUSED struct label_bytes request_labels(uint64_t request)
{
    struct label_bytes set = {.n_bytes = 0};
    char value[24];
    snprintf(value, sizeof value, "%llu", (unsigned long long)request);
    add_label(&set, "request", value, true);
    add_label(&set, "service", "shop", false);
    return set;
}

/* "key=value,..." as labels are shown; numbers as 7unit, variable ones with a * before. */
static UNUSED const char *labels_text(const unsigned char *bytes, size_t n_bytes)
{
    static char text[LABEL_SET_BYTES_MAX];
    struct label_cursor cursor = {bytes, bytes + n_bytes};
    struct label_head head;
    const char *key, *value;
    size_t n = 0;
    text[0] = '\0';
    while (sets_next(&cursor, &head, &key, &value)) {
        n += (size_t)sprintf(text + n, "%s%s%.*s=", n ? "," : "", head.is_variable ? "*" : "",
                             head.key_bytes, key);
        if (head.kind == LABEL_NUMBER)
            n += (size_t)sprintf(text + n, "%lld", (long long)head.number);
        n += (size_t)sprintf(text + n, "%.*s", head.value_bytes, value);
    }
    return text;
}

static UNUSED const char *set_text(const struct label_set *set)
{
    return labels_text(set->bytes, set->n_bytes);
}

/* ---- samples ---- */

/* A special for an object at `address`, entered and not yet on the table. */
static UNUSED struct special *enter_sample(uint64_t stack, const struct label_bytes *labels,
                                           uint64_t address, uint64_t size_bytes)
{
    uint64_t frames[2] = {0x1000 + stack, 0x2000};
    struct book_sample sample = {.frames = frames,
                                 .n_frames = 2,
                                 .labels = labels->bytes,
                                 .n_label_bytes = labels->n_bytes,
                                 .address = address,
                                 .size_bytes = size_bytes,
                                 .lg_factor = book_lg_factor()};
    return book_enter(&sample);
}

/* The sum of what is published. */
static UNUSED struct totals published_totals(void)
{
    struct totals sum = {0, 0, 0, 0};
    uint64_t cursor = 0;
    for (struct record *record; (record = records_next(&cursor)) != NULL;) {
        sum.alloc_objects += record->active.alloc_objects;
        sum.alloc_bytes += record->active.alloc_bytes;
        sum.inuse_objects += record->active.inuse_objects;
        sum.inuse_bytes += record->active.inuse_bytes;
    }
    return sum;
}

#endif
