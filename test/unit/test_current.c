/* SPDX-License-Identifier: MIT
 * A thread's own labels: the rules of the API, captures, scopes, handlers, memory. */
#include "ledger_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

static unsigned char gathered[LABEL_SET_BYTES_MAX];
static char long_text[1000]; /* of 'x' */

static const char *labels(void)
{
    return labels_text(gathered, gather_labels(gathered));
}

static int set(const char *key, const char *value)
{
    return current_set_text(key, value, strlen(value));
}

static void open_thread(void)
{
    ledger_open("LABELPROF_THREAD_LABELS=none", "LABELPROF_LABEL_KEYS=", NULL);
    memset(long_text, 'x', sizeof long_text - 1);
}

static const char *numbered(const char *format, int number)
{
    static char text[100];
    snprintf(text, sizeof text, format, number);
    return text;
}

static void fill_up(void)
{
    for (int i = 0; i < LABELS_MAX; i++)
        assert_int_equal(set(numbered("key%02d", i), numbered("value%d", i)), 0);
}

/* ---- setting ---- */

static void a_label_that_is_set_is_there_until_it_is_unset(void **state)
{
    (void)state;
    open_thread();
    assert_string_equal(labels(), "");
    assert_int_equal(set("a", "1"), 0);
    assert_int_equal(current_set_number("n", -7, "ms"), 0);
    assert_int_equal(current_set_number("m", 5, NULL), 0);
    assert_string_equal(labels(), "*a=1,*m=5,*n=-7ms");
    assert_int_equal(current_unset("a"), 0);
    assert_int_equal(current_unset("n"), 0);
    assert_string_equal(labels(), "*m=5");
}

static void a_later_value_replaces_the_earlier_be_it_text_or_number(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(set("a", "long value"), 0);
    assert_int_equal(set("a", "2"), 0);
    assert_string_equal(labels(), "*a=2");
    assert_int_equal(current_set_number("a", 3, "s"), 0);
    assert_string_equal(labels(), "*a=3s");
    assert_int_equal(current_set_number("a", 4, NULL), 0);
    assert_string_equal(labels(), "*a=4");
    assert_int_equal(set("a", "5"), 0);
    assert_string_equal(labels(), "*a=5");
}

static void an_empty_value_is_no_label(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(set("a", ""), 0);
    assert_string_equal(labels(), "");
    assert_int_equal(set("a", "1"), 0);
    assert_int_equal(set("a", ""), 0);
    assert_string_equal(labels(), "");
}

static void unsetting_what_is_not_set_is_no_error(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(current_unset("a"), 0); /* this thread never set anything */
    assert_int_equal(set("b", "1"), 0);
    assert_int_equal(current_unset("a"), 0);
    assert_string_equal(labels(), "*b=1");
}

static void keys_are_1_to_64_bytes_and_not_pprofs_own(void **state)
{
    (void)state;
    open_thread();
    char key[LABEL_KEY_BYTES + 2] = "";
    const char *const bad[] = {NULL, "", "pprof::", "pprof::base", key};
    memset(key, 'k', LABEL_KEY_BYTES + 1);
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        assert_int_equal(set(bad[i], "v"), -1);
        assert_int_equal(set(bad[i], ""), -1);
        assert_int_equal(current_set_number(bad[i], 1, NULL), -1);
        assert_int_equal(current_unset(bad[i]), -1);
    }
    assert_string_equal(labels(), "");
    key[LABEL_KEY_BYTES] = '\0';
    assert_int_equal(set(key, "v"), 0);
    assert_int_equal(set("pprof:", "v"), 0);
    assert_int_equal(set("PPROF::", "v"), 0);
    assert_int_equal(current_unset(key), 0);
    assert_string_equal(labels(), "*PPROF::=v,*pprof:=v");
}

static void a_numeric_bytes_is_refused(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(current_set_number("bytes", 1, "bytes"), -1);
    assert_int_equal(set("bytes", "many"), 0);
    assert_int_equal(current_set_number("bytes", 1, NULL), -1);
    assert_string_equal(labels(), "*bytes=many");
}

static void long_values_are_cut_at_a_character(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(current_set_text("a", long_text, 256), 0);
    assert_int_equal(strlen(labels()), 3 + 256);
    assert_int_equal(current_set_text("a", long_text, 999), 0);
    assert_int_equal(strlen(labels()), 3 + 256);
    memcpy(long_text + 255, "\xC3\xA9", 2);
    assert_int_equal(current_set_text("a", long_text, 999), 0);
    assert_int_equal(strlen(labels()), 3 + 255);
    assert_int_equal(current_set_number("a", 1, long_text), 0); /* a unit alike */
    assert_int_equal(strlen(labels()), 4 + 255);
}

static void a_33rd_label_is_refused_until_another_goes(void **state)
{
    (void)state;
    open_thread();
    fill_up();
    assert_int_equal(set("one", "more"), -1);
    assert_int_equal(current_set_number("one", 1, NULL), -1);
    assert_int_equal(set("key31", "new"), 0);
    assert_int_equal(current_unset("key07"), 0);
    assert_int_equal(set("one", "more"), 0);
    assert_int_equal(set("two", "more"), -1);
    const char *text = labels();
    assert_non_null(strstr(text, "*key31=new,*one=more"));
    assert_null(strstr(text, "key07"));
}

/* ---- scopes ---- */

static void a_scope_puts_back_what_was_before(void **state)
{
    (void)state;
    open_thread();
    struct label_before outer, inner, number;
    assert_int_equal(current_set_number("n", 5, "s"), 0);
    assert_int_equal(current_replace_text("a", "outer", &outer), 0);
    assert_int_equal(current_replace_text("a", "inner", &inner), 0);
    assert_int_equal(current_replace_text("n", "text", &number), 0);
    assert_string_equal(labels(), "*a=inner,*n=text");
    current_put_back(&number);
    current_put_back(&inner);
    assert_string_equal(labels(), "*a=outer,*n=5s");
    current_put_back(&outer);
    assert_string_equal(labels(), "*n=5s");
}

static void a_scope_of_a_whole_length_key_and_value_puts_them_back(void **state)
{
    (void)state;
    open_thread();
    char key[LABEL_KEY_BYTES + 1];
    memset(key, 'k', LABEL_KEY_BYTES);
    key[LABEL_KEY_BYTES] = '\0';
    assert_int_equal(current_set_text(key, long_text, 256), 0);
    struct label_before before;
    assert_int_equal(current_replace_text(key, "short", &before), 0);
    current_put_back(&before);
    assert_int_equal(strlen(labels()), 1 + 64 + 1 + 256);
}

static void a_scope_that_is_refused_changes_nothing(void **state)
{
    (void)state;
    open_thread();
    struct label_before before;
    fill_up();
    assert_int_equal(current_replace_text("one", "more", &before), -1);
    assert_int_equal(current_replace_text("", "more", &before), -1);
    assert_int_equal(current_replace_text("pprof::a", "more", &before), -1);
    assert_null(strstr(labels(), "more"));
}

static void a_scope_with_an_empty_value_hides_the_label_meanwhile(void **state)
{
    (void)state;
    open_thread();
    struct label_before before;
    assert_int_equal(set("a", "1"), 0);
    assert_int_equal(current_replace_text("a", "", &before), 0);
    assert_string_equal(labels(), "");
    current_put_back(&before);
    assert_string_equal(labels(), "*a=1");
}

/* ---- captures ---- */

static void a_capture_is_attached_in_place_of_all_labels(void **state)
{
    (void)state;
    open_thread();
    assert_null(current_capture());
    set("a", "1");
    current_set_number("n", 2, "s");
    struct label_capture *capture = current_capture();
    assert_non_null(capture);
    set("a", "changed");
    set("b", "2");
    assert_int_equal(current_attach(capture), 0);
    assert_string_equal(labels(), "*a=1,*n=2s");
    assert_int_equal(current_attach(NULL), 0);
    assert_string_equal(labels(), "");
    assert_int_equal(current_attach(capture), 0); /* as often as one likes */
    current_release(capture);
    assert_string_equal(labels(), "*a=1,*n=2s"); /* the thread keeps what is attached */
    current_release(NULL);
}

static void a_capture_of_nothing_set_any_more_is_none(void **state)
{
    (void)state;
    open_thread();
    set("a", "1");
    current_unset("a");
    assert_null(current_capture());
}

static void a_full_set_is_captured_and_attached_whole(void **state)
{
    (void)state;
    open_thread();
    fill_up();
    static char before[LABEL_SET_BYTES_MAX];
    strcpy(before, labels());
    struct label_capture *capture = current_capture();
    current_attach(NULL);
    for (int i = 0; i < LABELS_MAX; i++)
        set(numbered("other%d", i), "x");
    assert_int_equal(current_attach(capture), 0);
    assert_string_equal(labels(), before);
    current_release(capture);
}

static void *attach_and_read(void *capture)
{
    static char text[1000];
    assert_int_equal(current_attach(capture), 0);
    current_release(capture);
    strcpy(text, labels_text(gathered, gather_labels(gathered)));
    current_forget();
    return text;
}

static void a_capture_travels_to_another_thread(void **state)
{
    (void)state;
    open_thread();
    set("task", "42");
    struct label_capture *capture = current_capture();
    current_unset("task");
    pthread_t thread;
    void *text;
    assert_int_equal(pthread_create(&thread, NULL, attach_and_read, capture), 0);
    pthread_join(thread, &text);
    assert_string_equal(text, "*task=42");
    assert_string_equal(labels(), "");
}

/* ---- memory ---- */

/* One thread: TSan, which is slow here, has nothing to find and gets a tenth. */
#ifdef __SANITIZE_THREAD__
enum { N_CHANGES = 100000 };
#else
enum { N_CHANGES = 1000000 };
#endif

static void a_million_changes_take_no_more_memory(void **state)
{
    (void)state;
    open_thread();
    fill_up();
    size_t used = 0;
    for (int i = 0; i < N_CHANGES; i++) {
        if (i == 100)
            used = region_used_bytes(REGION_KEEP);
        const char *key = i % 2 ? "key07" : "key08";
        assert_int_equal(current_unset(key), 0);
        assert_int_equal(set(key, "again"), 0);
    }
    assert_int_equal(region_used_bytes(REGION_KEEP), used);
}

static void a_thread_gives_all_back_at_its_end(void **state)
{
    (void)state;
    open_thread();
    size_t used = 0;
    for (int i = 0; i < 1000; i++) {
        fill_up();
        struct label_capture *capture = current_capture();
        assert_non_null(capture);
        current_release(capture);
        current_forget();
        assert_null(thread_self.block);
        assert_string_equal(labels(), ""); /* a block again: as if new */
        if (i == 0)
            used = region_used_bytes(REGION_KEEP);
    }
    assert_int_equal(region_used_bytes(REGION_KEEP), used);
}

static void without_memory_labels_are_refused_and_the_set_ones_stay(void **state)
{
    (void)state;
    open_thread();
    assert_int_equal(set("a", "1"), 0);
    while (region_take(REGION_KEEP, 16))
        continue;
    assert_int_equal(set("b", "2"), -1);
    assert_null(current_capture());
    assert_int_equal(set("a", "3"), 0);
    assert_string_equal(labels(), "*a=3");
    struct thread_block *block = thread_self.block;
    thread_self.block = NULL; /* as in a thread without one */
    assert_int_equal(set("b", "2"), -1);
    assert_int_equal(current_attach(NULL), 0);
    assert_string_equal(labels(), "");
    thread_self.block = block;
}

static void a_capture_that_finds_no_memory_half_way_gives_all_back(void **state)
{
    (void)state;
    open_thread();
    fill_up();
    struct label_capture *capture = current_capture(); /* and with it room for one capture */
    current_release(capture);
    while (region_take(REGION_KEEP, 16))
        continue;
    for (int i = 0; i < 3; i++) {
        capture = current_capture();
        assert_non_null(capture);
        assert_null(current_capture());
        current_release(capture);
    }
}

/* ---- handlers ---- */

static void inside_the_profiler_a_thread_without_labels_gets_none(void **state)
{
    (void)state;
    open_thread();
    assert_true(thread_enter());
    assert_int_equal(set("a", "1"), -1);
    assert_int_equal(current_set_number("a", 1, NULL), -1);
    assert_null(current_capture());
    thread_leave();
    assert_int_equal(set("a", "1"), 0);
    assert_true(thread_enter());
    assert_int_equal(set("b", "1"), -1);  /* would need a slot */
    assert_int_equal(set("a", "2"), 0); /* has one */
    thread_leave();
    assert_string_equal(labels(), "*a=2");
}

static void a_change_that_interrupts_a_change_is_refused(void **state)
{
    (void)state;
    open_thread();
    set("a", "1");
    thread_self.block->is_changing = true;
    struct label_before before;
    assert_int_equal(set("a", "2"), -1);
    assert_int_equal(current_set_number("a", 2, NULL), -1);
    assert_int_equal(current_unset("a"), -1);
    assert_int_equal(current_attach(NULL), -1);
    assert_null(current_capture());
    assert_int_equal(current_replace_text("a", "2", &before), -1);
    thread_self.block->is_changing = false;
    assert_string_equal(labels(), "*a=1");
}

#ifdef __SANITIZE_THREAD__ /* its own functions are not made to be interrupted anywhere */
#define STEPPED_TESTS
#else
/* A handler between any two instructions: the processor's single step. Values are such that a torn
 * one is seen: `n` times one and the same letter, and `n` depends on the letter. */
#define TRAP_FLAG(operation)                                                      \
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushf; " operation ", (%%rsp); popf; " \
                     "lea 128(%%rsp), %%rsp" ::: "memory", "cc")

static const char text_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char text_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbb";
static uint64_t n_steps, n_torn, n_gathered, n_taken, n_refused;
static uint64_t change_at; /* the step at which the handler changes a label */
static bool is_setting;    /* it does at every step */

static bool is_whole(const struct label_head *head, const char *value)
{
    if (head->kind == LABEL_NUMBER)
        return head->number == 1111111111 && head->value_bytes == 2 && memcmp(value, "ns", 2) == 0;
    const char *text = value[0] == 'a' ? text_a : text_b;
    return head->value_bytes == strlen(text) && memcmp(value, text, head->value_bytes) == 0;
}

static void check_whole(size_t n_bytes)
{
    struct label_cursor cursor = {gathered, gathered + n_bytes};
    struct label_head head;
    const char *key, *value;
    while (sets_next(&cursor, &head, &key, &value))
        n_torn += !(head.key_bytes == 3 && memcmp(key, "key", 3) == 0 && is_whole(&head, value));
}

static void on_step(int number)
{
    (void)number;
    n_steps++;
    if (thread_enter()) {
        check_whole(gather_labels(gathered));
        n_gathered++;
        thread_leave();
    }
    if (!is_setting)
        return;
    const char *text = n_steps % 2 ? text_a : text_b;
    if (current_set_text("key", text, strlen(text)) == 0)
        n_taken++;
    else
        n_refused++;
}

static void step_through(void (*body)(void), bool is_handler_setting)
{
    struct sigaction action = {.sa_handler = on_step}, before;
    is_setting = is_handler_setting;
    assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
    TRAP_FLAG("orl $0x100");
    body();
    TRAP_FLAG("andl $~0x100");
    sigaction(SIGTRAP, &before, NULL);
    assert_true(n_steps > 100);
    assert_true(n_gathered > 0);
    if (is_setting)
        assert_true(n_taken > 0 && n_refused > 0);
    check_whole(gather_labels(gathered));
    assert_int_equal(n_torn, 0);
}

static void change_all_ways(void)
{
    struct label_before before;
    set("key", text_a);
    set("key", text_b);
    current_unset("key");
    current_set_number("key", 1111111111, "ns");
    set("key", text_a);
    current_replace_text("key", text_b, &before);
    current_put_back(&before);
    current_attach(NULL);
}

static struct label_capture *captured;

static void capture_and_attach(void)
{
    captured = current_capture();
    current_attach(NULL);
    current_attach(captured);
}

static void change_in_a_scope(void)
{
    struct label_before before;
    current_replace_text("key", text_a, &before);
    is_setting = false;
    current_put_back(&before);
}

static void a_sample_in_a_handler_sees_each_label_whole_or_not_at_all(void **state)
{
    (void)state;
    open_thread();
    step_through(change_all_ways, false);
}

static void changes_in_a_handler_leave_every_label_whole(void **state)
{
    (void)state;
    open_thread();
    step_through(change_all_ways, true);
}

static void a_capture_is_whole_whatever_a_handler_changes_meanwhile(void **state)
{
    (void)state;
    open_thread();
    set("key", text_a);
    step_through(capture_and_attach, true);
    assert_int_equal(current_attach(captured), 0);
    check_whole(gather_labels(gathered));
    assert_int_equal(n_torn, 0);
}

static void a_scope_puts_back_a_whole_label_whatever_a_handler_changes_meanwhile(void **state)
{
    (void)state;
    open_thread();
    set("key", text_b);
    step_through(change_in_a_scope, true);
}

/* One change, at many places of the gathering in turn. */
static void on_step_change_once(int number)
{
    (void)number;
    if (n_steps++ == change_at)
        n_taken += current_set_text("key", text_b, strlen(text_b)) == 0;
}

static size_t gather_with_a_change(void)
{
    n_steps = 0;
    current_set_text("key", text_a, strlen(text_a));
    thread_enter();
    TRAP_FLAG("orl $0x100");
    size_t n_bytes = gather_labels(gathered);
    TRAP_FLAG("andl $~0x100");
    thread_leave();
    return n_bytes;
}

static void what_is_gathered_is_whole_whatever_a_handler_changes_meanwhile(void **state)
{
    (void)state;
    open_thread();
    struct sigaction action = {.sa_handler = on_step_change_once};
    assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
    do {
        size_t n_bytes = gather_with_a_change();
        check_whole(n_bytes);
        assert_true(n_bytes > 0);
        change_at += 53; /* a look at every instruction takes minutes */
    } while (change_at < n_steps);
    assert_int_equal(n_torn, 0);
    assert_true(n_taken > 5);
}
#define STEPPED_TESTS                                                                             \
    cmocka_unit_test(a_sample_in_a_handler_sees_each_label_whole_or_not_at_all),                  \
        cmocka_unit_test(changes_in_a_handler_leave_every_label_whole),                           \
        cmocka_unit_test(a_capture_is_whole_whatever_a_handler_changes_meanwhile),                \
        cmocka_unit_test(a_scope_puts_back_a_whole_label_whatever_a_handler_changes_meanwhile),   \
        cmocka_unit_test(what_is_gathered_is_whole_whatever_a_handler_changes_meanwhile),
#endif

/* ---- many threads ---- */

static struct label_capture *handed; /* atomic: a capture on its way */

static void *pass_on(void *id)
{
    for (int i = 0; i < 3000; i++) {
        struct label_capture *taken = __atomic_exchange_n(&handed, NULL, __ATOMIC_ACQ_REL);
        if (taken)
            current_attach(taken);
        current_release(taken);
        current_set_text("key", id, strlen(id));
        struct label_capture *mine = current_capture();
        current_release(__atomic_exchange_n(&handed, mine, __ATOMIC_ACQ_REL));
        if (i % 100 == 0)
            current_forget();
    }
    current_forget();
    return NULL;
}

static void a_scope_over_a_slot_used_before_copies_nothing_it_should_not(void **state)
{
    (void)state;
    open_thread();
    for (int i = 0; i < 4; i++)
        current_set_text(numbered("key%d", i), "value", 5);
    current_forget(); /* four slots go back, linked through their first bytes */
    struct {
        struct label_before before;
        unsigned char after[64];
    } scope;
    memset(&scope, 0xA5, sizeof scope);
    assert_int_equal(current_replace_text("new", "one", &scope.before), 0);
    for (size_t i = 0; i < sizeof scope.after; i++)
        assert_int_equal(scope.after[i], 0xA5);
    assert_false(scope.before.slot.is_set);
    current_put_back(&scope.before);
    assert_string_equal(labels(), "");
}

static void captures_pass_between_threads(void **state)
{
    (void)state;
    open_thread();
    pthread_t threads[3];
    const char *ids[] = {"one", "two", "three"};
    assert_int_equal(set("key", "mine"), 0);
    size_t used = region_used_bytes(REGION_KEEP);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pass_on, (void *)(uintptr_t)ids[i]), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(current_attach(handed), 0);
    const char *text = labels();
    assert_true(!strcmp(text, "*key=one") || !strcmp(text, "*key=two") ||
                !strcmp(text, "*key=three"));
    assert_true(region_used_bytes(REGION_KEEP) < used + 64 * 1024);
}

/* ---- names ---- */

static void a_threads_name_is_asked_once_and_again_after_a_change(void **state)
{
    (void)state;
    open_thread();
    prctl(PR_SET_NAME, "first");
    struct thread_block *block = current_block();
    assert_string_equal(current_name(block), "first");
    prctl(PR_SET_NAME, "second"); /* behind our back */
    assert_string_equal(current_name(block), "first");
    current_names_changed();
    assert_string_equal(current_name(block), "second");
    current_name_is("third");
    assert_string_equal(current_name(block), "third");
    current_name_is("a name that is much too long");
    assert_string_equal(current_name(block), "a name that is ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_label_that_is_set_is_there_until_it_is_unset),
        cmocka_unit_test(a_later_value_replaces_the_earlier_be_it_text_or_number),
        cmocka_unit_test(an_empty_value_is_no_label),
        cmocka_unit_test(unsetting_what_is_not_set_is_no_error),
        cmocka_unit_test(keys_are_1_to_64_bytes_and_not_pprofs_own),
        cmocka_unit_test(a_numeric_bytes_is_refused),
        cmocka_unit_test(long_values_are_cut_at_a_character),
        cmocka_unit_test(a_33rd_label_is_refused_until_another_goes),
        cmocka_unit_test(a_scope_puts_back_what_was_before),
        cmocka_unit_test(a_scope_of_a_whole_length_key_and_value_puts_them_back),
        cmocka_unit_test(a_scope_that_is_refused_changes_nothing),
        cmocka_unit_test(a_scope_with_an_empty_value_hides_the_label_meanwhile),
        cmocka_unit_test(a_capture_is_attached_in_place_of_all_labels),
        cmocka_unit_test(a_capture_of_nothing_set_any_more_is_none),
        cmocka_unit_test(a_full_set_is_captured_and_attached_whole),
        cmocka_unit_test(a_capture_travels_to_another_thread),
        cmocka_unit_test(a_million_changes_take_no_more_memory),
        cmocka_unit_test(a_thread_gives_all_back_at_its_end),
        cmocka_unit_test(without_memory_labels_are_refused_and_the_set_ones_stay),
        cmocka_unit_test(a_capture_that_finds_no_memory_half_way_gives_all_back),
        cmocka_unit_test(inside_the_profiler_a_thread_without_labels_gets_none),
        cmocka_unit_test(a_change_that_interrupts_a_change_is_refused),
        STEPPED_TESTS
        cmocka_unit_test(a_scope_over_a_slot_used_before_copies_nothing_it_should_not),
        cmocka_unit_test(captures_pass_between_threads),
        cmocka_unit_test(a_threads_name_is_asked_once_and_again_after_a_change),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
