/* SPDX-License-Identifier: MIT
 * The shared table: whatever threads, generations and replacement do, a rule found is the rule of
 * its address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/region.h"
#include "unwind/cfi.h"
#include "unwind/fde.h"
#include "unwind/find.h"
#include "unwind/modules.h"
#include "unwind/rules.h"
#include "unwind/walk.h"

#define SEED 20240229u
enum { ADDRESSES_MAX = 60000, TABLE_SLOTS = RULES_WAYS << RULES_LG_SETS };

static struct {
    uintptr_t address;
    uint64_t rule;
} known[ADDRESSES_MAX]; /* of libc, with what cfi.c says, and the module */
static unsigned n_known;

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static uint64_t look_up(uint64_t generation_bits, uintptr_t address)
{
    uint64_t rule, key = generation_bits | address;
    return rules_find(key, &rule) ? rule : rules_add(key, 0);
}

static bool is_remembered(uintptr_t address)
{
    uint64_t rule;
    return rules_find(rules_generation_bits() | address, &rule);
}

static void know(const struct cfi_tables *tables, uint32_t module, uintptr_t address)
{
    uint64_t rule = cfi_rule(tables, address);
    if (n_known == ADDRESSES_MAX || rule == RULE_NONE || rule == RULE_GUESS)
        return;
    known[n_known].address = address;
    known[n_known++].rule = rule | (uint64_t)module << RULES_ADDRESS_BITS;
}

static int know_libc(void **state)
{
    (void)state;
    struct cfi_tables tables;
    uint32_t module;
    if (!region_open(1 << 20, 1 << 20) || !unwind_open() ||
        modules_find((uintptr_t)gnu_get_libc_version, &module, &tables) != MODULES_FOUND)
        return -1;
    const int32_t *table = (const int32_t *)(tables.header + 8);
    for (int32_t row = 0; row < table[0]; row++) {
        struct fde fde;
        uintptr_t begin = tables.header + (uintptr_t)(long)table[1 + 2 * row];
        if (fde_find(&tables, begin, &fde) != FDE_FOUND)
            continue;
        for (uintptr_t address = fde.begin; address < fde.limit; address += 19)
            know(&tables, module, address);
    }
    return n_known > TABLE_SLOTS ? 0 : -1;
}

static void a_rule_is_remembered(void **state)
{
    (void)state;
    modules_new_generation();
    assert_false(is_remembered(known[0].address));
    assert_int_equal(look_up(rules_generation_bits(), known[0].address), known[0].rule);
    assert_true(is_remembered(known[0].address));
}

static void a_new_generation_forgets_all(void **state)
{
    (void)state;
    uint64_t bits = rules_generation_bits();
    for (unsigned i = 0; i < 100; i++)
        look_up(bits, known[i].address);
    modules_new_generation();
    for (unsigned i = 0; i < 100; i++)
        assert_false(is_remembered(known[i].address));
}

static void generations_may_come_round(void **state)
{
    (void)state;
    look_up(rules_generation_bits(), known[0].address);
    for (int i = 0; i < 65536; i++)
        modules_new_generation();
    assert_false(is_remembered(known[0].address));
}

static void more_addresses_than_slots_stay_right(void **state)
{
    (void)state;
    uint64_t bits = rules_generation_bits();
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < n_known; i++)
            assert_int_equal(look_up(bits, known[i].address), known[i].rule);
    unsigned n_remembered = 0;
    for (unsigned i = 0; i < n_known; i++)
        n_remembered += is_remembered(known[i].address);
    assert_true(n_remembered <= TABLE_SLOTS);
    assert_true(n_remembered > TABLE_SLOTS / 10 * 9); /* and the table is used as a whole */
}

static void as_many_addresses_as_fill_an_eighth_hardly_displace_each_other(void **state)
{
    (void)state;
    modules_new_generation();
    uint64_t bits = rules_generation_bits();
    unsigned stride = n_known / (TABLE_SLOTS / 8), n = 0, n_remembered = 0;
    for (unsigned i = 0; i < n_known; i += stride, n++)
        look_up(bits, known[i].address);
    for (unsigned i = 0; i < n_known; i += stride)
        n_remembered += is_remembered(known[i].address);
    assert_true(n_remembered > n / 100 * 99);
}

static void the_child_of_a_fork_keeps_them(void **state)
{
    (void)state;
    modules_new_generation();
    uint64_t bits = rules_generation_bits();
    for (unsigned i = 0; i < 100; i++)
        look_up(bits, known[i].address);
    pid_t child = fork();
    if (child == 0) {
        unsigned n = 0;
        for (unsigned i = 0; i < 100; i++)
            n +=
                is_remembered(known[i].address) && look_up(bits, known[i].address) == known[i].rule;
        _exit(n == 100 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static bool must_stop; /* atomic */

static void *look_up_at_random(void *arg)
{
    uint64_t seed = SEED + (uintptr_t)arg;
    unsigned long n_wrong = 0;
    for (int round = 0; round < 80; round++) {
        uint64_t bits = rules_generation_bits();
        for (int i = 0; i < 500; i++) {
            unsigned which = (unsigned)(next_random(&seed) % n_known);
            n_wrong += look_up(bits, known[which].address) != known[which].rule;
        }
    }
    return (void *)n_wrong;
}

static void *advance_generations(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < 40; i++)
            modules_new_generation();
        usleep(200);
    }
    return NULL;
}

static void threads_never_find_anothers_rule_while_generations_pass(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS], advancer;
    __atomic_store_n(&must_stop, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&advancer, NULL, advance_generations, NULL), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_at_random, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *n_wrong;
        pthread_join(threads[i], &n_wrong);
        assert_null(n_wrong);
    }
    __atomic_store_n(&must_stop, true, __ATOMIC_RELAXED);
    pthread_join(advancer, NULL);
}

static void a_rule_keeps_its_numbers(void **state)
{
    (void)state;
    for (int64_t cfa = -(1 << 26); cfa < 1 << 26; cfa += 8 * 7919)
        for (int64_t slot = -(1 << 18); slot < 1 << 18; slot += 8 * 1009) {
            uint64_t rule = rule_of(RULE_PLAIN | RULE_BP_IS_SAVED, cfa, slot) | RULE_MODULE_MASK;
            assert_int_equal(rule_cfa_offset(rule), cfa);
            assert_int_equal(rule_bp_slot(rule), slot);
            assert_true(rule_is_plain(rule));
        }
    assert_int_equal(rule_of(RULE_PLAIN, 1 << 26, 0), RULE_NONE);
    assert_int_equal(rule_of(RULE_PLAIN, 8, -(1 << 18) - 8), RULE_NONE);
    assert_int_equal(rule_of(RULE_PLAIN, 12, 0), RULE_NONE);
    assert_int_equal(rule_of(RULE_PLAIN, 8, -4), RULE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_keeps_its_numbers),
        cmocka_unit_test(a_rule_is_remembered),
        cmocka_unit_test(a_new_generation_forgets_all),
        cmocka_unit_test(generations_may_come_round),
        cmocka_unit_test(more_addresses_than_slots_stay_right),
        cmocka_unit_test(as_many_addresses_as_fill_an_eighth_hardly_displace_each_other),
        cmocka_unit_test(the_child_of_a_fork_keeps_them),
        cmocka_unit_test(threads_never_find_anothers_rule_while_generations_pass),
    };
    return cmocka_run_group_tests(tests, know_libc, NULL);
}
