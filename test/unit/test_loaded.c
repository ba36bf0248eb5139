/* SPDX-License-Identifier: MIT
 * Symbols of loaded objects and the place of thread-local ones, on this process itself: libc's
 * errno is a thread-local variable whose address the compiler knows, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/region.h"
#include "base/thread.h"
#include "labels/loaded.h"
#include "labels/readable.h"
#include "labels/slot.h"

struct look {
    const char *object, *symbol;
    int n_objects, n_found;
    uintptr_t address; /* of a symbol that isn't thread-local */
    struct slot_place place;
};

static int look_at(struct dl_phdr_info *info, size_t n_bytes, void *context)
{
    struct look *look = context;
    struct loaded object;
    (void)n_bytes;
    slot_compare(info);
    if (!strstr(info->dlpi_name, look->object) || !loaded_open(&object, info))
        return 0;
    look->n_objects++;
    const ElfW(Sym) *symbol = loaded_find(&object, look->symbol);
    if (!symbol)
        return 0;
    look->n_found++;
    look->address = info->dlpi_addr + symbol->st_value;
    if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS)
        look->place = (struct slot_place){.module = info->dlpi_tls_modid,
                                          .offset = symbol->st_value,
                                          .tp_word = loaded_tls_word(&object, symbol)};
    return 0;
}

static struct look find(const char *object, const char *symbol)
{
    struct look look = {.object = object, .symbol = symbol};
    dl_iterate_phdr(look_at, &look);
    return look;
}

static void functions_are_found_where_dlsym_finds_them(void **state)
{
    (void)state;
    const char *const names[] = {"cmocka_set_message_output", "cmocka_set_test_filter"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct look look = find("libcmocka", names[i]);
        assert_int_equal(look.n_found, 1);
        assert_ptr_equal(look.address, dlsym(RTLD_DEFAULT, names[i]));
    }
}

static void what_an_object_only_uses_is_not_found_in_it(void **state)
{
    (void)state;
    const char *const names[] = {"malloc", "", "cmocka_set_message_outpu", "no such name"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct look look = find("libcmocka", names[i]);
        assert_int_equal(look.n_objects, 1);
        assert_int_equal(look.n_found, 0);
    }
}

static void *check_errno(void *context)
{
    const struct look *look = context;
    struct slot_place by_dtv = look->place, by_word = look->place;
    unsigned n_probes = 10;
    by_dtv.tp_word = 0;
    by_word.module = UINT64_MAX;
    assert_ptr_equal(slot_find(&by_dtv, &n_probes), &errno);
    assert_ptr_equal(slot_find(&look->place, &n_probes), &errno);
    if (look->place.tp_word)
        assert_ptr_equal(slot_find(&by_word, &n_probes), &errno);
    return NULL;
}

static void each_thread_finds_its_own_thread_local_variable(void **state)
{
    (void)state;
    pthread_t thread;
    struct look look = find("libc.so", "errno");
    assert_int_equal(look.n_found, 1);
    assert_int_not_equal(look.place.module, 0);
    check_errno(&look);
    assert_int_equal(pthread_create(&thread, NULL, check_errno, &look), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_module_the_thread_knows_nothing_of_has_no_slot(void **state)
{
    (void)state;
    unsigned n_probes = 10;
    struct slot_place unknown = {.module = 100000};
    assert_int_equal(slot_find(&unknown, &n_probes), 0);
    struct slot_place younger = find("libc.so", "errno").place;
    younger.tp_word = 0;
    younger.min_generation = slot_generation_seen() + 1;
    assert_int_equal(slot_find(&younger, &n_probes), 0);
    younger.min_generation--;
    assert_ptr_equal(slot_find(&younger, &n_probes), &errno);
}

static void a_word_that_is_no_negative_offset_is_not_followed(void **state)
{
    (void)state;
    static const intptr_t words[] = {0, 8, INTPTR_MIN, -(INT64_C(1) << 25), 0x7f0000000000};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        unsigned n_probes = 10;
        struct slot_place place = {.module = UINT64_MAX, .tp_word = (uintptr_t)&words[i]};
        assert_int_equal(slot_find(&place, &n_probes), 0);
    }
    unsigned n_probes = 10;
    struct slot_place nowhere = {.module = UINT64_MAX, .tp_word = 8};
    assert_int_equal(slot_find(&nowhere, &n_probes), 0);
}

/* Where the loader's answer is another than the dtv's, no dtv is trusted any more. Last: for good. */
static void a_dtv_that_disagrees_with_the_loader_is_never_read(void **state)
{
    (void)state;
    unsigned n_probes = 10;
    struct slot_place place = find("libc.so", "errno").place;
    struct dl_phdr_info wrong = {.dlpi_tls_modid = place.module, .dlpi_tls_data = &n_probes};
    place.tp_word = 0;
    assert_ptr_equal(slot_find(&place, &n_probes), &errno);
    slot_compare(&wrong);
    assert_int_equal(slot_find(&place, &n_probes), 0);
}

static int open_regions(void **state)
{
    (void)state;
    return region_open(1 << 20, 1 << 20) && readable_open() && slot_open() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found_where_dlsym_finds_them),
        cmocka_unit_test(what_an_object_only_uses_is_not_found_in_it),
        cmocka_unit_test(each_thread_finds_its_own_thread_local_variable),
        cmocka_unit_test(a_module_the_thread_knows_nothing_of_has_no_slot),
        cmocka_unit_test(a_word_that_is_no_negative_offset_is_not_followed),
        cmocka_unit_test(a_dtv_that_disagrees_with_the_loader_is_never_read),
    };
    return cmocka_run_group_tests(tests, open_regions, NULL);
}
