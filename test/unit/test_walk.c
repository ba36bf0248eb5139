/* SPDX-License-Identifier: MIT
 * Walks over stacks whose frames are known beforehand, or that glibc's backtrace() also walks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/region.h"
#include "unwind/cfi.h"
#include "unwind/elf.h"
#include "unwind/fde.h"
#include "unwind/modules.h"
#include "unwind/rule.h"
#include "unwind/walk.h"

#define SEED 20240229u
#define NOINLINE __attribute__((noinline))
/* Its frame is to be the one the compiler makes without a sanitizer's help. */
#define PLAIN_FRAME __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

enum { MAX_FRAMES = 512, DEPTH_MAX = 200 };

struct trace {
    uint64_t frames[MAX_FRAMES];
    unsigned n;
    unsigned max;                      /* to ask for */
    bool is_blind;                     /* ask as a thread whose stack bounds are unknown */
    uintptr_t expected[DEPTH_MAX + 2]; /* return addresses, outermost first */
    unsigned n_expected;
    void *theirs[MAX_FRAMES];
    int n_theirs;
};

static struct trace trace; /* of the test in progress */

static __thread struct stack_bounds thread_bounds; /* asked for outside of signal handlers */

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attributes), 0);
    assert_int_equal(pthread_attr_getstack(&attributes, &low, &bytes), 0);
    pthread_attr_destroy(&attributes);
    thread_bounds = (struct stack_bounds){(uintptr_t)low, (uintptr_t)low + bytes};
}

static NOINLINE void take(void)
{
    struct unwind_regs regs;
    struct stack_bounds bounds = thread_bounds;
    if (trace.is_blind)
        bounds = (struct stack_bounds){0, 0};
    __asm__ volatile("lea 0f(%%rip), %0\n0: mov %%rsp, %1\nmov %%rbp, %2"
                     : "=&r"(regs.pc), "=&r"(regs.sp), "=&r"(regs.bp));
    regs.pc++;
    trace.n = unwind_walk(regs, bounds, trace.frames, trace.max ? trace.max : MAX_FRAMES);
    trace.n_theirs = backtrace(trace.theirs, MAX_FRAMES);
}

static void expect_return_to(void *return_address)
{
    trace.expected[trace.n_expected++] = (uintptr_t)return_address;
}

static bool is_truncated(void)
{
    return trace.frames[trace.n - 1] == FRAME_TRUNCATED;
}

static unsigned position_of(uintptr_t address)
{
    unsigned i = 0;
    while (i < trace.n && FRAME_ADDRESS(trace.frames[i]) != address)
        i++;
    return i;
}

/* The expected return addresses, innermost last, follow one another somewhere in the trace. */
static void check_expected_in_sequence(void)
{
    unsigned from = position_of(trace.expected[trace.n_expected - 1] - 1);
    assert_true(from + trace.n_expected <= trace.n);
    for (unsigned i = 0; i < trace.n_expected; i++)
        assert_int_equal(FRAME_ADDRESS(trace.frames[from + i]),
                         trace.expected[trace.n_expected - 1 - i] - 1);
}

/* take()'s own frame aside, both see the same; backtrace may show a sanitizer's wrapper more. */
static void check_as_backtrace(void)
{
    assert_true(trace.n > 3 && trace.n_theirs >= (int)trace.n);
    assert_false(is_truncated());
    void **theirs = trace.theirs + trace.n_theirs - trace.n;
    for (unsigned i = 1; i < trace.n; i++)
        assert_int_equal(FRAME_ADDRESS(trace.frames[i]), (uintptr_t)theirs[i] - 1);
}

static int fresh_trace(void **state)
{
    (void)state;
    memset(&trace, 0, sizeof(trace));
    return 0;
}

static PLAIN_FRAME void nest(int left)
{
    expect_return_to(__builtin_return_address(0));
    if (left > 0)
        nest(left - 1);
    else
        take();
    __asm__ volatile("");
}

static void nested_calls_come_back_in_order(void **state)
{
    (void)state;
    for (int depth = 1; depth <= DEPTH_MAX; depth++) {
        fresh_trace(NULL);
        nest(depth);
        check_expected_in_sequence();
        check_as_backtrace();
    }
}

static void a_stack_deeper_than_asked_for_ends_truncated(void **state)
{
    (void)state;
    for (unsigned max = 1; max < 20; max++) {
        fresh_trace(NULL);
        trace.max = max;
        nest(50);
        assert_int_equal(trace.n, max);
        assert_int_equal(trace.frames[max - 1], FRAME_TRUNCATED);
        for (unsigned i = 1; i < max - 1; i++) /* 0 is take() */
            assert_true(FRAME_ADDRESS(trace.frames[i]) > PAGE_BYTES);
        if (max > 3)
            assert_int_equal(FRAME_ADDRESS(trace.frames[2]), trace.expected[50] - 1);
    }
}

static void a_stack_that_just_fits_is_whole(void **state)
{
    (void)state;
    nest(20);
    unsigned n = trace.n;
    fresh_trace(NULL);
    trace.max = n;
    nest(20);
    assert_int_equal(trace.n, n);
    assert_false(is_truncated());
}

static void without_bounds_the_same_is_found_by_probing(void **state)
{
    (void)state;
    trace.is_blind = true;
    nest(100);
    check_expected_in_sequence();
    check_as_backtrace();
}

static void *walk_in_thread(void *unused)
{
    (void)unused;
    find_bounds();
    nest(10);
    return NULL;
}

static void a_thread_ends_at_its_start(void **state)
{
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, walk_in_thread, NULL), 0);
    pthread_join(thread, NULL);
    check_expected_in_sequence();
    check_as_backtrace();
}

static NOINLINE int take_once(const void *a, const void *b)
{
    if (trace.n == 0) {
        expect_return_to(__builtin_return_address(0));
        take();
    }
    return *(const int *)a - *(const int *)b;
}

static void libc_without_frame_pointers_is_passed(void **state)
{
    (void)state;
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = 64 - i;
    qsort(numbers, 64, sizeof(int), take_once);
    check_expected_in_sequence();
    check_as_backtrace();
    fresh_trace(NULL);
    void *(*volatile search)(const void *, const void *, size_t, size_t,
                             int (*)(const void *, const void *)) = bsearch;
    search(&(int){5}, numbers, 64, sizeof(int), take_once);
    check_expected_in_sequence();
    check_as_backtrace();
}

static PLAIN_FRAME void with_room_of_any_size(int n)
{
    char *room = __builtin_alloca((size_t)n * 16 + 1);
    __asm__ volatile("" : : "r"(room) : "memory");
    nest(3);
    __asm__ volatile("" : : "r"(room) : "memory");
}

static void rooms_of_any_size_are_passed(void **state)
{
    (void)state;
    for (int n = 0; n < 100; n += 7) {
        fresh_trace(NULL);
        with_room_of_any_size(n);
        check_expected_in_sequence();
        check_as_backtrace();
    }
}

/* Over-aligned and of unknown size: gcc finds its caller's frame by way of BP and memory. */
static PLAIN_FRAME void realigned(int n)
{
    char aligned[64] __attribute__((aligned(64)));
    char *room = __builtin_alloca((size_t)n * 16 + 1);
    __asm__ volatile("" : : "r"(room), "r"(aligned) : "memory");
    nest(3);
    __asm__ volatile("" : : "r"(room), "r"(aligned) : "memory");
}

static void realigned_stacks_are_passed(void **state)
{
    (void)state;
    realigned(3);
    check_expected_in_sequence();
    check_as_backtrace();
    uintptr_t in_realigned = trace.expected[0] - 1;
    struct elf_segment segment;
    assert_true(elf_find(in_realigned, &segment));
    assert_int_equal(rule_kind(cfi_rule(&segment.tables, in_realigned)), RULE_REALIGNED);
}

/* Interrupted at their first instruction: its predecessor belongs to another function. */
void fault_at_once(void);
__asm__(".pushsection .text\n"
        "    ret\n"
        "fault_at_once:\n"
        "    .cfi_startproc\n"
        "    ud2\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".popsection\n");

static void take_and_step_over(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    take();
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static PLAIN_FRAME void nest_and_fault(int left)
{
    expect_return_to(__builtin_return_address(0));
    if (left > 0)
        nest_and_fault(left - 1);
    else
        fault_at_once();
    __asm__ volatile("");
}

static void fault_on(stack_t *stack)
{
    struct sigaction action = {.sa_sigaction = take_and_step_over, .sa_flags = SA_SIGINFO}, before;
    stack_t stack_before;
    if (stack) {
        action.sa_flags |= SA_ONSTACK;
        assert_int_equal(sigaltstack(stack, &stack_before), 0);
    }
    assert_int_equal(sigaction(SIGILL, &action, &before), 0);
    nest_and_fault(5);
    sigaction(SIGILL, &before, NULL);
    if (stack)
        sigaltstack(&stack_before, NULL);
    check_expected_in_sequence();
    unsigned interrupted = position_of((uintptr_t)fault_at_once);
    assert_true(interrupted > 0 && interrupted + 1 < trace.n);
    assert_int_equal(FRAME_ADDRESS(trace.frames[interrupted + 2]), trace.expected[5] - 1);
    assert_false(is_truncated());
}

static void a_signal_shows_where_it_struck(void **state)
{
    (void)state;
    fault_on(NULL);
}

static void a_signal_on_its_own_stack_shows_it_too(void **state)
{
    (void)state;
    stack_t stack = {.ss_size = 1 << 18};
    stack.ss_sp =
        mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack.ss_sp != MAP_FAILED);
    fault_on(&stack);
    fresh_trace(NULL);
    trace.is_blind = true;
    fault_on(&stack);
    munmap(stack.ss_sp, stack.ss_size);
}

static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
    expect_return_to(__builtin_return_address(0));
    nest(20);
}

/* Memory between two pages nobody may touch. */
static char *island(size_t bytes)
{
    char *sea = mmap(NULL, bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(sea != MAP_FAILED);
    assert_int_equal(mprotect(sea + PAGE_BYTES, bytes, PROT_READ | PROT_WRITE), 0);
    return sea + PAGE_BYTES;
}

static void sink(char *of_island, size_t bytes)
{
    munmap(of_island - PAGE_BYTES, bytes + 2 * PAGE_BYTES);
}

static void a_coroutine_ends_at_its_bottom(void **state)
{
    (void)state;
    const size_t stack_bytes = 1 << 18;
    char *stack = island(stack_bytes);
    assert_int_equal(getcontext(&coroutine_context), 0);
    coroutine_context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = stack_bytes};
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    assert_int_equal(swapcontext(&main_context, &coroutine_context), 0);
    assert_int_equal(position_of(trace.expected[0] - 1), trace.n); /* where nobody called */
    assert_int_equal(FRAME_ADDRESS(trace.frames[trace.n - 1]), trace.expected[1] - 1);
    assert_false(is_truncated());
    sink(stack, stack_bytes);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static uintptr_t random_word(uint64_t *seed, uintptr_t stack, size_t bytes)
{
    switch (next_random(seed) % 6) {
    case 0:
        return stack + next_random(seed) % (2 * bytes);
    case 1:
        return (uintptr_t)qsort + next_random(seed) % 65536;
    case 2:
        return (uintptr_t)nest + next_random(seed) % 4096;
    case 3:
        return next_random(seed) << 33 | next_random(seed);
    case 4:
        return next_random(seed) << 16;
    default:
        return next_random(seed) % 64;
    }
}

static void a_stack_of_rubbish_is_survived(void **state)
{
    (void)state;
    enum { BYTES = 2 * PAGE_BYTES, ROUNDS = 20000 };
    uintptr_t stack = (uintptr_t)island(BYTES);
    uint64_t seed = SEED;
    unsigned long n_long = 0, n_truncated = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uintptr_t sp = stack + next_random(&seed) % (BYTES / 8) * 8;
        for (uintptr_t at = sp; at < stack + BYTES; at += 8)
            *(uintptr_t *)at = random_word(&seed, stack, BYTES);
        struct unwind_regs regs = {random_word(&seed, stack, BYTES), sp,
                                   random_word(&seed, stack, BYTES)};
        struct stack_bounds bounds = {stack, stack + BYTES};
        if (round % 2)
            bounds = (struct stack_bounds){0, 0};
        trace.n = unwind_walk(regs, bounds, trace.frames, MAX_FRAMES);
        assert_true(trace.n >= 1 && trace.n <= MAX_FRAMES);
        n_long += trace.n > 2;
        n_truncated += is_truncated();
    }
    assert_true(n_long > ROUNDS / 100); /* rubbish that looked good was followed */
    assert_true(n_truncated > ROUNDS / 2);
    sink((char *)stack, BYTES);
}

static void a_registers_value_of_any_kind_is_survived(void **state)
{
    (void)state;
    const uintptr_t odd[] = {0, 1, 7, 8, PAGE_BYTES, 1ul << 47, ~0ul, ~0ul - 8, 1ul << 63};
    const unsigned n = sizeof(odd) / sizeof(odd[0]);
    for (unsigned i = 0; i < n * n * n; i++) {
        uintptr_t pc = i % 2 ? (uintptr_t)nest + 8 : odd[i % n];
        struct unwind_regs regs = {pc, odd[i / n % n], odd[i / n / n]};
        uint64_t frames[8];
        unsigned got = unwind_walk(regs, thread_bounds, frames, 8);
        assert_true(got >= 1 && got <= 8 && frames[got - 1] == FRAME_TRUNCATED);
        assert_int_equal(unwind_walk(regs, thread_bounds, frames, 0), 0);
    }
}

typedef void (*caller_of)(void (*)(void));

static caller_of jit(const void *code, size_t bytes)
{
    char *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    memcpy(page, code, bytes);
    caller_of function;
    memcpy(&function, &page, sizeof(page));
    return function;
}

static NOINLINE void take_in_callback(void)
{
    expect_return_to(__builtin_return_address(0));
    take();
    __asm__ volatile("");
}

static NOINLINE void call_jit(caller_of function)
{
    expect_return_to(__builtin_return_address(0));
    function(take_in_callback);
    __asm__ volatile("");
}

/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret, of which the call ends at 6 */
static const uint8_t with_frame_pointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};

static void code_without_description_is_passed_by_frame_pointer(void **state)
{
    (void)state;
    caller_of function = jit(with_frame_pointer, sizeof(with_frame_pointer));
    call_jit(function);
    unsigned at = position_of(trace.expected[1] - 1);
    assert_true(at + 2 < trace.n);
    assert_int_equal(trace.expected[1], (uintptr_t)function + 6);
    assert_int_equal(FRAME_MODULE(trace.frames[at]), 0);
    assert_int_equal(FRAME_MODULE(trace.frames[at + 1]), 1); /* call_jit */
    assert_int_equal(FRAME_ADDRESS(trace.frames[at + 2]), trace.expected[0] - 1);
    assert_false(is_truncated());
}

static void code_that_uses_the_frame_pointer_otherwise_ends_the_walk(void **state)
{
    (void)state;
    /* push %rbp; lea 8(%rsp),%rbp; call *%rdi; pop %rbp; ret: what lies above BP is no frame */
    const uint8_t code[] = {0x55, 0x48, 0x8d, 0x6c, 0x24, 0x08, 0xff, 0xd7, 0x5d, 0xc3};
    call_jit(jit(code, sizeof(code)));
    unsigned at = position_of(trace.expected[1] - 1);
    assert_int_equal(at + 2, trace.n);
    assert_true(is_truncated());
}

/* A made-up walk from JIT code: BP points at a pair {bp_there, pc_there}. */
static void walk_from_jit(uintptr_t sp, uintptr_t *bp, uintptr_t bp_there, uintptr_t pc_there,
                          struct stack_bounds bounds)
{
    static uintptr_t code;
    if (!code)
        code = (uintptr_t)jit(with_frame_pointer, sizeof(with_frame_pointer));
    bp[0] = bp_there;
    bp[1] = pc_there;
    trace.n = unwind_walk((struct unwind_regs){code + 6, sp, (uintptr_t)bp}, bounds, trace.frames,
                          MAX_FRAMES);
    assert_int_equal(FRAME_ADDRESS(trace.frames[0]), code + 5);
    assert_true(is_truncated());
}

static void a_guess_must_find_a_return_address_on_the_same_stack(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20, WORDS = BYTES / 8 };
    uintptr_t *stack = (uintptr_t *)island(BYTES);
    uintptr_t sp = (uintptr_t)(stack + 100), *bp = stack + 200;
    struct stack_bounds bounds = {(uintptr_t)stack, (uintptr_t)(stack + WORDS)}, unknown = {0, 0};
    nest(1);
    uintptr_t into_nest = trace.expected[1]; /* behind a call */

    walk_from_jit(sp, bp, 0, into_nest, bounds);
    assert_int_equal(trace.n, 3); /* it is followed, and ends in nest()'s rubbish */
    assert_int_equal(FRAME_ADDRESS(trace.frames[1]), into_nest - 1);
    walk_from_jit(sp, bp, 0, into_nest, unknown);
    assert_int_equal(trace.n, 3);

    walk_from_jit(sp, bp, 0, into_nest - 1, bounds); /* not behind a call */
    assert_int_equal(trace.n, 2);
    walk_from_jit(sp, bp, 0, (uintptr_t)stack, bounds); /* data */
    assert_int_equal(trace.n, 2);
    walk_from_jit(sp, stack + 99, 0, into_nest, bounds); /* below SP */
    assert_int_equal(trace.n, 2);
    walk_from_jit(sp, stack + WORDS - 100, 0, into_nest, unknown); /* too far */
    assert_int_equal(trace.n, 2);
    uintptr_t elsewhere[2];
    walk_from_jit(sp, elsewhere, 0, into_nest, bounds);
    assert_int_equal(trace.n, 2);
    sink((char *)stack, BYTES);
}

static void a_walk_never_goes_down_the_stack(void **state)
{
    (void)state;
    uintptr_t stack[400] = {0};
    struct stack_bounds bounds = {(uintptr_t)stack, (uintptr_t)(stack + 400)};
    with_room_of_any_size(1);
    uintptr_t in_room = trace.expected[0]; /* the caller's frame lies at BP there */
    for (int at = 0; at < 400; at += 2) {
        for (int i = 0; i < 400; i += 2) {
            stack[i] = (uintptr_t)(stack + i); /* BP points at itself, */
            stack[i + 1] = in_room;            /* for ever */
        }
        struct unwind_regs regs = {in_room, (uintptr_t)(stack + 200), (uintptr_t)(stack + at)};
        trace.n = unwind_walk(regs, bounds, trace.frames, MAX_FRAMES);
        assert_int_equal(trace.n, at + 2 > 200 ? 3 : 2);
        assert_true(is_truncated());
    }
}

/* Remembers more than cfi.c does; libunwind follows. */
void remembers_much(void (*)(void));
__asm__(".pushsection .text\n"
        "remembers_much:\n"
        "    .cfi_startproc\n"
        "    sub $24, %rsp\n"
        "    .cfi_adjust_cfa_offset 24\n"
        "    .cfi_remember_state\n"
        "    .cfi_remember_state\n"
        "    .cfi_remember_state\n"
        "    .cfi_remember_state\n"
        "    .cfi_remember_state\n"
        "    call *%rdi\n"
        "    add $24, %rsp\n"
        "    .cfi_adjust_cfa_offset -24\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".popsection\n");

static void what_only_libunwind_knows_is_truncated_until_it_is_loaded(void **state)
{
    (void)state;
    assert_int_equal(unwind_compiler_state(), UNWIND_COMPILER_UNWANTED);
    unwind_load_compiler_if_wanted();
    assert_int_equal(unwind_compiler_state(), UNWIND_COMPILER_UNWANTED);
    remembers_much(take_in_callback);
    assert_true(is_truncated());
    assert_int_equal(position_of(trace.expected[0] - 1) + 2, trace.n);
    assert_int_equal(unwind_compiler_state(), UNWIND_COMPILER_WANTED);
    unwind_load_compiler_if_wanted();
    assert_int_equal(unwind_compiler_state(), UNWIND_COMPILER_LOADED);
    fresh_trace(NULL);
    trace.is_blind = true; /* how much stack is left is unknown: not compiled, nor given up */
    remembers_much(take_in_callback);
    assert_true(is_truncated());
    fresh_trace(NULL);
    remembers_much(take_in_callback);
    check_expected_in_sequence();
    check_as_backtrace();
}

static void own_frames_are_left_out(void **state)
{
    (void)state;
    nest(10);
    unsigned n = trace.n;
    struct elf_segment segment;
    struct fde fde;
    assert_true(elf_find((uintptr_t)nest, &segment));
    assert_int_equal(fde_find(&segment.tables, (uintptr_t)nest, &fde), FDE_FOUND);
    unwind_leave_out(fde.begin, fde.limit);
    fresh_trace(NULL);
    nest(10);
    unwind_leave_out(0, 0);
    assert_int_equal(trace.n, n - 11);
    for (unsigned i = 0; i < trace.n; i++)
        assert_false(FRAME_ADDRESS(trace.frames[i]) - fde.begin < fde.limit - fde.begin);
    assert_false(is_truncated());
}

static int open_unwinder(void **state)
{
    (void)state;
    find_bounds();
    return region_open(1 << 20, 1 << 20) && unwind_open() ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup(name, fresh_trace)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nested_calls_come_back_in_order),
        TEST(a_stack_deeper_than_asked_for_ends_truncated),
        TEST(a_stack_that_just_fits_is_whole),
        TEST(without_bounds_the_same_is_found_by_probing),
        TEST(a_thread_ends_at_its_start),
        TEST(libc_without_frame_pointers_is_passed),
        TEST(rooms_of_any_size_are_passed),
        TEST(realigned_stacks_are_passed),
        TEST(a_signal_shows_where_it_struck),
        TEST(a_signal_on_its_own_stack_shows_it_too),
        TEST(a_coroutine_ends_at_its_bottom),
        TEST(code_without_description_is_passed_by_frame_pointer),
        TEST(code_that_uses_the_frame_pointer_otherwise_ends_the_walk),
        TEST(a_guess_must_find_a_return_address_on_the_same_stack),
        TEST(a_walk_never_goes_down_the_stack),
        TEST(own_frames_are_left_out),
        TEST(what_only_libunwind_knows_is_truncated_until_it_is_loaded),
        TEST(a_stack_of_rubbish_is_survived),
        TEST(a_registers_value_of_any_kind_is_survived),
    };
    return cmocka_run_group_tests(tests, open_unwinder, NULL);
}
