/* SPDX-License-Identifier: MIT
 * cfi.c against made-up descriptions whose rule is known, against libunwind on every description
 * of real libraries, and against random bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/cfi.h"
#include "unwind/compile.h"
#include "base/loader.h"
#include "unwind/elf.h"
#include "unwind/fde.h"
#include "unwind/rule.h"

#define SEED 20240229u
enum { ENOUGH_STACK_BYTES = 1 << 20 };

/* One module with one function of 64 bytes: .eh_frame_hdr with one row, a CIE, an FDE. */
struct made_up {
    uint8_t bytes[256];
    size_t n;
};

#define CODE_OFFSET 4096 /* of the function, from the header; nobody reads it */

static void put(struct made_up *made, const void *bytes, size_t n)
{
    assert_true(made->n + n <= sizeof(made->bytes));
    memcpy(made->bytes + made->n, bytes, n);
    made->n += n;
}

static void put4(struct made_up *made, int64_t value)
{
    int32_t narrow = (int32_t)value;
    put(made, &narrow, 4);
}

static void put_with_length(struct made_up *made, const struct made_up *content)
{
    put4(made, (int64_t)content->n);
    put(made, content->bytes, content->n);
}

static void make(struct made_up *made, const char *letters, const uint8_t *program, size_t n)
{
    struct made_up cie = {0}, fde = {0};
    const uint8_t aligns[] = {1, 0x78, 16};         /* 1, -8, RA is 16 */
    const uint8_t common[] = {0x0c, 7, 8, 0x90, 1}; /* CFA=SP+8, RA at CFA-8 */
    const uint8_t header[] = {1, 0x1b, 0x03, 0x3b};
    *made = (struct made_up){0};
    put(made, header, 4);
    put4(made, 20 - 4);
    put4(made, 1);
    put4(made, CODE_OFFSET);
    put4(made, 0); /* the FDE's place, below */

    put4(&cie, 0);
    put(&cie, "\1", 1);
    put(&cie, letters, strlen(letters) + 1);
    put(&cie, aligns, 3);
    put(&cie, "\1\x1b", 2); /* augmentation data: R */
    put(&cie, common, sizeof(common));
    size_t cie_place = made->n;
    put_with_length(made, &cie);

    size_t fde_place = made->n;
    memcpy(made->bytes + 16, &(int32_t){(int32_t)fde_place}, 4);
    put4(&fde, (int64_t)(fde_place + 4 - cie_place));
    put4(&fde, CODE_OFFSET - (int64_t)(fde_place + 8));
    put4(&fde, 64);
    put(&fde, "\0", 1);
    put(&fde, program, n);
    put_with_length(made, &fde);
}

static struct cfi_tables tables_of(const struct made_up *made)
{
    uintptr_t at = (uintptr_t)made->bytes;
    return (struct cfi_tables){at, at, at + made->n};
}

static uint64_t compiled(const struct cfi_tables *tables, uintptr_t address)
{
    uint64_t rule = 0;
    assert_true(compile_rule(tables, address, ENOUGH_STACK_BYTES, &rule));
    return rule;
}

static void expect_rule(const char *letters, const uint8_t *program, size_t n, unsigned offset,
                        uint64_t expected)
{
    struct made_up made;
    make(&made, letters, program, n);
    struct cfi_tables tables = tables_of(&made);
    uintptr_t address = tables.header + CODE_OFFSET + offset;
    assert_int_equal(cfi_rule(&tables, address), expected);
    uint64_t from_libunwind = compiled(&tables, address);
    if (expected != RULE_NONE && expected != RULE_SIGNAL && from_libunwind != RULE_NONE)
        assert_int_equal(from_libunwind, expected);
}

#define EXPECT_RULE(offset, expected, ...)                                                         \
    expect_rule("zR", (const uint8_t[]){__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__}), offset,    \
                expected)

#define SP_PLUS(n) rule_of(RULE_PLAIN, n, 0)
#define SP_PLUS_BP_AT(n, m) rule_of(RULE_PLAIN | RULE_BP_IS_SAVED, n, m)
#define BP_PLUS_BP_AT(n, m) rule_of(RULE_PLAIN | RULE_BASE_IS_BP | RULE_BP_IS_SAVED, n, m)

static void a_frame_pointer_prologue_is_followed_step_by_step(void **state)
{
    (void)state;
    /* push %rbp; mov %rsp,%rbp */
#define PROLOGUE 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6
    EXPECT_RULE(0, SP_PLUS(8), PROLOGUE);
    EXPECT_RULE(1, SP_PLUS_BP_AT(16, -16), PROLOGUE);
    EXPECT_RULE(3, SP_PLUS_BP_AT(16, -16), PROLOGUE);
    EXPECT_RULE(4, BP_PLUS_BP_AT(16, -16), PROLOGUE);
    EXPECT_RULE(63, BP_PLUS_BP_AT(16, -16), PROLOGUE);
}

static void an_epilogue_in_the_middle_is_undone_after_it(void **state)
{
    (void)state;
    /* … remember; pop; ret; restore_state */
#define EPILOGUE PROLOGUE, 0x48, 0x0a, 0xc6, 0x0c, 7, 8, 0x41, 0x0b
    EXPECT_RULE(11, BP_PLUS_BP_AT(16, -16), EPILOGUE);
    EXPECT_RULE(12, SP_PLUS(8), EPILOGUE);
    EXPECT_RULE(13, BP_PLUS_BP_AT(16, -16), EPILOGUE);
}

static void every_way_to_say_an_offset_is_understood(void **state)
{
    (void)state;
    EXPECT_RULE(0, SP_PLUS(4096), 0x0e, 0x80, 0x20);                         /* def_cfa_offset */
    EXPECT_RULE(0, SP_PLUS(24), 0x13, 0x7d);                                 /* …_sf: -3 * -8 */
    EXPECT_RULE(0, SP_PLUS(32), 0x12, 7, 0x7c);                              /* def_cfa_sf */
    EXPECT_RULE(0, BP_PLUS_BP_AT(16, -16), 0x0c, 6, 16, 0x86, 2);            /* def_cfa */
    EXPECT_RULE(0, SP_PLUS_BP_AT(8, -24), 0x05, 6, 3);                       /* offset_extended */
    EXPECT_RULE(0, SP_PLUS_BP_AT(8, -24), 0x11, 6, 3);                       /* …_sf */
    EXPECT_RULE(0, SP_PLUS(8), 0x86, 2, 0x06, 6);                            /* restore_extended */
    EXPECT_RULE(0, SP_PLUS(8), 0x86, 2, 0x08, 6);                            /* same_value */
    EXPECT_RULE(0, SP_PLUS(8), 0x2e, 16, 0x00, 0x83, 2, 0x09, 12, 3);        /* of no interest */
    EXPECT_RULE(5, SP_PLUS(16), 0x02, 5, 0x0e, 16, 0x02, 1, 0x0e, 24);       /* advance_loc1 */
    EXPECT_RULE(5, SP_PLUS(16), 0x03, 5, 0, 0x0e, 16, 0x03, 1, 0, 0x0e, 24); /* advance_loc2 */
    EXPECT_RULE(5, SP_PLUS(16), 0x04, 5, 0, 0, 0, 0x0e, 16);                 /* advance_loc4 */
}

static void a_realigned_stack_is_known_by_its_two_expressions(void **state)
{
    (void)state;
    EXPECT_RULE(0, rule_of(RULE_REALIGNED, -8, 0), 0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06);
    EXPECT_RULE(0, RULE_NONE, 0x0f, 3, 0x76, 0x78, 0x06);       /* BP elsewhere */
    EXPECT_RULE(0, RULE_NONE, 0x0f, 4, 0x76, 0x78, 0x06, 0x06); /* one dereference more */
}

static void the_linkers_stubs_push_half_way(void **state)
{
    (void)state;
#define PLT 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
    for (unsigned offset = 0; offset < 32; offset++) {
        struct made_up made;
        make(&made, "zR", (const uint8_t[]){PLT}, sizeof((uint8_t[]){PLT}));
        struct cfi_tables tables = tables_of(&made);
        uintptr_t address = tables.header + CODE_OFFSET + offset;
        assert_int_equal(cfi_rule(&tables, address), SP_PLUS(address % 16 >= 11 ? 16 : 8));
        assert_int_equal(cfi_rule(&tables, address), compiled(&tables, address));
    }
}

static void what_has_no_rule_gets_none(void **state)
{
    (void)state;
    EXPECT_RULE(0, RULE_NONE, 0x0c, 10, 8);                  /* CFA in r10 */
    EXPECT_RULE(0, RULE_NONE, 0x0e, 12);                     /* not a multiple of 8 */
    EXPECT_RULE(0, RULE_NONE, 0x90, 2);                      /* return address elsewhere */
    EXPECT_RULE(0, RULE_NONE, 0x09, 16, 3);                  /* … in a register */
    EXPECT_RULE(0, RULE_NONE, 0x86, 2, 0x14, 6, 1);          /* BP computed */
    EXPECT_RULE(0, RULE_NONE, 0x0b);                         /* restore without remember */
    EXPECT_RULE(0, RULE_NONE, 0x3f);                         /* no such instruction */
    EXPECT_RULE(0, RULE_NONE, 0x0e);                         /* cut off */
    EXPECT_RULE(0, RULE_NONE, 0x0e, 0x80, 0x80, 0x80, 0x40); /* 128 MiB */
    EXPECT_RULE(0, RULE_NONE, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a); /* remembers too much */
}

/* libunwind falls back on BP where it finds no description; what it guesses is no rule. */
static void libunwinds_guess_at_undescribed_code_is_refused(void **state)
{
    (void)state;
    struct made_up made;
    make(&made, "zR", (const uint8_t[]){0}, 1);
    struct cfi_tables tables = tables_of(&made);
    assert_int_equal(compiled(&tables, tables.header + CODE_OFFSET), SP_PLUS(8));
    assert_int_equal(compiled(&tables, tables.header + CODE_OFFSET + 64), RULE_NONE);
    made.bytes[3] = 0xff; /* a table of another format */
    assert_int_equal(compiled(&tables, tables.header + CODE_OFFSET), RULE_NONE);
}

static void the_outermost_frame_says_so(void **state)
{
    (void)state;
    EXPECT_RULE(0, RULE_OUTERMOST, 0x07, 16);
}

static void a_signal_frame_is_known_by_its_letter(void **state)
{
    (void)state;
    expect_rule("zRS", (const uint8_t[]){0}, 1, 0, RULE_SIGNAL);
}

static void an_unknown_letter_means_no_rule(void **state)
{
    (void)state;
    struct made_up made;
    make(&made, "zRX", (const uint8_t[]){0}, 1);
    struct cfi_tables tables = tables_of(&made);
    assert_int_equal(cfi_rule(&tables, tables.header + CODE_OFFSET), RULE_NONE);
}

static void code_without_a_description_is_guessed(void **state)
{
    (void)state;
    EXPECT_RULE(64, RULE_GUESS, 0x00);
    EXPECT_RULE(-1u, RULE_GUESS, 0x00);
    struct cfi_tables none = {0};
    assert_int_equal(cfi_rule(&none, 4096), RULE_GUESS);
}

struct tally {
    unsigned long n_same, n_only_libunwind, n_only_ours, n_neither, n_differ;
};

static void compare_at(const struct cfi_tables *tables, uintptr_t address, struct tally *tally)
{
    uint64_t ours = cfi_rule(tables, address), theirs = compiled(tables, address);
    if (ours == RULE_NONE && theirs == RULE_NONE) {
        tally->n_neither++;
    } else if (theirs == RULE_NONE || ours == RULE_SIGNAL) {
        tally->n_only_ours++;
    } else if (ours == RULE_NONE) {
        tally->n_only_libunwind++;
    } else if (ours == theirs) {
        tally->n_same++;
    } else {
        tally->n_differ++;
        printf("  %#lx: %#lx, libunwind %#lx\n", address - tables->header, ours, theirs);
    }
}

static void compare_fde(const struct cfi_tables *tables, uintptr_t begin, struct tally *tally)
{
    struct fde fde;
    if (fde_find(tables, begin, &fde) != FDE_FOUND)
        return;
    uintptr_t bytes = fde.limit - fde.begin, stride = bytes / 8 + 1;
    for (uintptr_t offset = 0; offset < 8 && offset < bytes; offset++)
        compare_at(tables, begin + offset, tally);
    for (uintptr_t offset = 8; offset < bytes; offset += stride)
        compare_at(tables, begin + offset, tally);
    compare_at(tables, fde.limit - 1, tally);
}

static bool compare_library(const char *name, const char *symbol, struct tally *tally)
{
    void *handle = dlopen(name, RTLD_NOW);
    void *code = handle ? dlsym(handle, symbol) : NULL;
    if (handle && !code)
        code = dlsym(RTLD_DEFAULT, symbol); /* the loader's own handle finds nothing */
    struct elf_segment segment;
    if (!code || !elf_find((uintptr_t)code, &segment))
        return false;
    const int32_t *table = (const int32_t *)(segment.tables.header + 8);
    for (int32_t row = 0; row < table[0]; row++)
        compare_fde(&segment.tables, segment.tables.header + (uintptr_t)(long)table[1 + 2 * row],
                    tally);
    return true;
}

static void its_rules_are_those_of_libunwind_for_whole_libraries(void **state)
{
    (void)state;
    static const struct {
        const char *name, *symbol;
        bool is_everywhere;
    } libraries[] = {
        {"libc.so.6", "qsort", true},
        {"ld-linux-x86-64.so.2", "_dl_mcount", true},
        {"libm.so.6", "sin", true},
        {"libstdc++.so.6", "__cxa_throw", false},
        {"libcrypto.so.3", "EVP_DigestUpdate", false},
        {"libpython3.11.so.1.0", "PyEval_EvalCode", false},
    };
    for (unsigned i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        struct tally tally = {0};
        bool is_here = compare_library(libraries[i].name, libraries[i].symbol, &tally);
        assert_true(is_here || !libraries[i].is_everywhere);
        if (!is_here)
            continue;
        unsigned long n_all =
            tally.n_same + tally.n_only_libunwind + tally.n_only_ours + tally.n_neither;
        printf("  %-22s %7lu addresses: %lu same, %lu ours only, %lu libunwind only, %lu neither\n",
               libraries[i].name, n_all, tally.n_same, tally.n_only_ours, tally.n_only_libunwind,
               tally.n_neither);
        assert_int_equal(tally.n_differ, 0);
        assert_true(tally.n_same > 1000);
        assert_true((tally.n_only_libunwind + tally.n_neither) * 50 < n_all);
    }
}

/* A page with nothing readable behind it: the reader that leaves its bounds dies here. */
static uint8_t *page_before_a_hole(void)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *page =
        mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    assert_int_equal(mprotect(page + page_bytes, page_bytes, PROT_NONE), 0);
    return page + page_bytes;
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void spoil(struct made_up *made, uint64_t *seed)
{
    for (uint64_t n = next_random(seed) % 6; n-- > 0;)
        made->bytes[next_random(seed) % made->n] = (uint8_t)next_random(seed);
}

static void spoilt_tables_are_never_read_beyond(void **state)
{
    (void)state;
    uint8_t *hole = page_before_a_hole();
    uint64_t seed = SEED;
    unsigned long n_rules = 0;
    for (int round = 0; round < 100000; round++) {
        struct made_up made;
        uint8_t program[100];
        size_t n = next_random(&seed) % sizeof(program);
        for (size_t i = 0; i < n; i++)
            program[i] = (uint8_t)next_random(&seed) & (next_random(&seed) % 2 ? 0xff : 0x1f);
        make(&made, "zR", program, n);
        spoil(&made, &seed);
        size_t kept = round % 2 ? made.n : next_random(&seed) % (made.n + 1);
        memcpy(hole - kept, made.bytes, kept);
        struct cfi_tables tables = {(uintptr_t)hole - kept, (uintptr_t)hole - kept,
                                    (uintptr_t)hole};
        n_rules += cfi_rule(&tables, tables.header + CODE_OFFSET + 63) != RULE_NONE;
    }
    assert_true(n_rules > 1000 && n_rules < 99000); /* the spoiling neither kills nor spares all */
}

static int load_libunwind(void **state)
{
    (void)state;
    struct cfi_tables none = {0};
    uint64_t rule;
    if (!loader_open())
        return -1;
    compile_rule(&none, 0, 0, &rule);
    return compile_load_if_wanted() ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_pointer_prologue_is_followed_step_by_step),
        cmocka_unit_test(an_epilogue_in_the_middle_is_undone_after_it),
        cmocka_unit_test(every_way_to_say_an_offset_is_understood),
        cmocka_unit_test(a_realigned_stack_is_known_by_its_two_expressions),
        cmocka_unit_test(the_linkers_stubs_push_half_way),
        cmocka_unit_test(what_has_no_rule_gets_none),
        cmocka_unit_test(libunwinds_guess_at_undescribed_code_is_refused),
        cmocka_unit_test(the_outermost_frame_says_so),
        cmocka_unit_test(a_signal_frame_is_known_by_its_letter),
        cmocka_unit_test(an_unknown_letter_means_no_rule),
        cmocka_unit_test(code_without_a_description_is_guessed),
        cmocka_unit_test(its_rules_are_those_of_libunwind_for_whole_libraries),
        cmocka_unit_test(spoilt_tables_are_never_read_beyond),
    };
    return cmocka_run_group_tests(tests, load_libunwind, NULL);
}
