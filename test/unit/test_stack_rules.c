/* SPDX-License-Identifier: MIT
 * Rules on stacks through the real C library: found once per stack, then never looked at again; and
 * the labels of a sample, from its set and its stack. */
#include "ledger_fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "labels/stack_rules.h"
#include "publish/sample_labels.h"
#include "unwind/find.h"
#include "unwind/walk.h"

static char path[64], error[512];

static void write_rules(const char *text)
{
    strcpy(path, "/tmp/labelprof-rules-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool open_with(const char *more)
{
    char variable[128];
    snprintf(variable, sizeof variable, "LABELPROF_RULES=%s", path);
    ledger_open("LABELPROF_MAX_MEMORY=16m", variable, more, NULL);
    assert_true(unwind_open());
    return stack_rules_open(error, sizeof error);
}

static void open_rules(const char *text)
{
    write_rules(text);
    if (!open_with(NULL))
        fail_msg("%s", error);
    unlink(path);
}

/* A frame in a function of the C library itself, not of a sanitizer before it. */
static uint64_t frame_in(const char *function)
{
    uint32_t module;
    struct cfi_tables tables;
    void *library = dlopen("libc.so.6", RTLD_LAZY);
    uintptr_t address = (uintptr_t)dlsym(library, function) + 1;
    assert_int_equal(modules_find(address, &module, &tables), MODULES_FOUND);
    return FRAME_OF(module, address);
}

/* "key=value ..." of the stack's rules. */
static const char *labels_of(const struct stack *stack)
{
    static char text[1024];
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < stack->n_rules; i++) {
        struct rule_label label = stack_rules_label(stacks_rules(stack)[i]);
        n += (size_t)sprintf(text + n, "%s%.*s=%.*s", i ? " " : "", (int)label.key_bytes, label.key,
                             (int)label.value_bytes, label.value);
    }
    return text;
}

static struct stack *stack_of(const char *leaf, const char *caller)
{
    const uint64_t frames[] = {frame_in(leaf), frame_in(caller), 0x1234};
    return stacks_get(frames, 3);
}

static void a_stack_is_labelled_by_the_functions_and_modules_it_runs_through(void **state)
{
    (void)state;
    open_rules("component=sort function qsort*\ncomponent=text function wcscoll strtol\n"
               "library=c module libc.so.6\nlibrary=any module *\nother=x function nonesuch\n");
    assert_string_equal(labels_of(stack_of("qsort_r", "strtol")), "component=sort library=c");
    assert_string_equal(labels_of(stack_of("strtol", "qsort_r")), "component=text library=c");
    assert_string_equal(labels_of(stack_of("wcslen", "qsort_r")), "component=sort library=c");
    assert_string_equal(labels_of(stack_of("wcslen", "getenv")), "library=c");
    const uint64_t nowhere[] = {0x1234, FRAME_TRUNCATED};
    assert_string_equal(labels_of(stacks_get(nowhere, 2)), "");
}

static void the_frames_of_a_stack_with_rules_are_as_they_were(void **state)
{
    (void)state;
    open_rules("a=b module *\n");
    const uint64_t frames[] = {frame_in("qsort_r"), 7};
    struct stack *stack = stacks_get(frames, 2);
    assert_int_equal(stack->n_frames, 2);
    assert_memory_equal(stack->frames, frames, sizeof frames);
    assert_ptr_equal(stacks_get(frames, 2), stack);
    assert_ptr_not_equal(stacks_get(frames, 1), stack);
    assert_string_equal(labels_of(stack), "a=b");
}

/* The rules can't even be read while known stacks are sampled. */
static void a_sample_of_a_known_stack_looks_at_no_rule(void **state)
{
    (void)state;
    open_rules("a=b module *\n");
    const struct label_bytes none = {.n_bytes = 0};
    uint64_t frames[] = {frame_in("qsort_r"), frame_in("strtol")};
    struct book_sample sample = {.frames = frames,
                                 .n_frames = 2,
                                 .labels = none.bytes,
                                 .address = 0x100000,
                                 .size_bytes = 100};
    struct special *special = book_enter(&sample);
    const char *key = stack_rules_label(0).key; /* where the file begins */
    char *all = (char *)(uintptr_t)key - offsetof(struct label_rules, text);
    assert_int_equal(mprotect(all, sizeof(struct label_rules), PROT_NONE), 0);
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t n_events;
        assert_true(specials_insert(special, &n_events));
        assert_true(specials_free((void *)0x100000, &n_events));
        special = book_enter(&sample);
        assert_non_null(special);
    }
    cycle_publish();
    assert_int_equal(stacks_count(), 1);
    assert_int_equal(mprotect(all, sizeof(struct label_rules), PROT_READ), 0);
    struct record *record = region_at(special->record);
    assert_string_equal(labels_of(region_at(record->stack)), "a=b");
}

static void rules_live_on_in_the_child_of_fork(void **state)
{
    (void)state;
    open_rules("a=b function strtol\n");
    assert_string_equal(labels_of(stack_of("strtol", "getenv")), "a=b");
    pid_t child = fork();
    if (child == 0)
        _exit(stacks_count() == 0 && !strcmp(labels_of(stack_of("strtol", "qsort_r")), "a=b") &&
                      !strcmp(labels_of(stack_of("wcslen", "qsort_r")), "")
                  ? 0
                  : 1);
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

/* ---- start ---- */

static void without_rules_no_stack_has_any(void **state)
{
    (void)state;
    path[0] = '\0';
    assert_true(open_with(NULL));
    assert_int_equal(stack_of("strtol", "getenv")->n_rules, 0);
    const char *const empty[] = {"", "# nothing\n\n"};
    for (unsigned i = 0; i < ARRAY_LENGTH(empty); i++) {
        write_rules(empty[i]);
        strcpy(options.rules, path);
        assert_true(stack_rules_open(error, sizeof error));
        assert_int_equal(stack_of("qsort_r", "getenv")->n_rules, 0);
        unlink(path);
    }
}

static void a_bad_rule_is_named_with_its_place(void **state)
{
    (void)state;
    write_rules("a=b function f\n  c=d fnuction g\n");
    assert_false(open_with(NULL));
    char expected[600];
    snprintf(expected, sizeof expected,
             "LABELPROF_RULES=%s:2:7: a label is followed by 'function' or 'module'; profiling is "
             "off",
             path);
    assert_string_equal(error, expected);
    unlink(path);
}

static void assert_unreadable(const char *name, const char *reason)
{
    strcpy(options.rules, name);
    error[0] = '\0';
    assert_false(stack_rules_open(error, sizeof error));
    assert_non_null(strstr(error, reason));
    assert_non_null(strstr(error, "profiling is off"));
    assert_null(strchr(error, '\n'));
    assert_true(strlen(error) < 400);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    path[0] = '\0';
    assert_true(open_with(NULL));
    assert_unreadable("/no/such/file", "LABELPROF_RULES=/no/such/file: no such file");
    assert_unreadable("/tmp", "it can't be read");
    assert_unreadable("/dev/zero", "it can't be read");
    strcpy(path, "/tmp/labelprof-fifo-XXXXXX");
    assert_non_null(mkdtemp(path));
    char fifo[80];
    snprintf(fifo, sizeof fifo, "%s/f\ni", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_unreadable(fifo, "/f?i: it can't be read");
    unlink(fifo);
    rmdir(path);
    static char large[RULE_FILE_BYTES_MAX + 2];
    memset(large, '\n', sizeof large - 1);
    write_rules(large);
    assert_unreadable(path, ":1:1: the file has more than 256 KiB");
    unlink(path);
}

static void only_wanted_keys_are_given(void **state)
{
    (void)state;
    write_rules("a=1 module *\nb=2 module *\ntrace_id=3 module *\n");
    assert_true(open_with("LABELPROF_LABEL_KEYS=b"));
    assert_string_equal(labels_of(stack_of("strtol", "getenv")), "b=2");
    unlink(path);
}

static void trace_ids_are_given_only_when_asked_for(void **state)
{
    (void)state;
    open_rules("a=1 module *\nb=2 module *\ntrace_id=3 module *\n");
    assert_string_equal(labels_of(stack_of("strtol", "getenv")), "a=1 b=2");
}

/* ---- a sample's labels ---- */

/* "key=value ..." as written, of these labels of a set and a stack in libc. */
static const char *written(const struct label_bytes *set)
{
    static char text[4096];
    static struct sample_labels labels;
    size_t n = 0;
    text[0] = '\0';
    sample_labels_fill(&labels, sets_get(set->bytes, set->n_bytes), stack_of("strtol", "getenv"));
    for (size_t i = 0; i < labels.n; i++) {
        const struct profile_label *label = &labels.at[i];
        n += (size_t)sprintf(text + n, "%s%.*s=%.*s", i ? " " : "", (int)label->key.n_bytes,
                             label->key.bytes, (int)label->text.n_bytes, label->text.bytes);
    }
    return text;
}

static void a_rule_stands_above_process_and_thread_and_below_all_else(void **state)
{
    (void)state;
    open_rules("b=rule module *\nz=rule module *\nthread_name=rule module *\na=rule module *\n");
    struct label_bytes set = {.n_bytes = 0};
    assert_string_equal(written(&set), "a=rule b=rule thread_name=rule z=rule");
    add_label(&set, "b", "process", false);
    add_label(&set, "c", "process", false);
    add_label(&set, "thread_name", "thread", false);
    assert_string_equal(written(&set), "a=rule b=rule c=process thread_name=rule z=rule");
    set.n_bytes = 0;
    add_label(&set, "a", "api", true);
    add_label(&set, "aa", "api", true);
    add_label(&set, "z", "(other)", true);
    assert_string_equal(written(&set), "a=api aa=api b=rule thread_name=rule z=(other)");
}

static unsigned n_with(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

static void beyond_32_the_lowest_give_way(void **state)
{
    (void)state;
    open_rules("rule1=r module *\nrule2=r module *\nrule3=r module *\n");
    struct label_bytes set = {.n_bytes = 0};
    char key[16];
    for (unsigned i = 0; i < LABELS_MAX; i++) {
        snprintf(key, sizeof key, "k%02u", i);
        add_label(&set, i == 30 ? "thread_id" : key, "v", i >= 2 && i != 30);
    }
    const char *text = written(&set);
    assert_int_equal(n_with(text, "="), LABELS_MAX);
    assert_int_equal(n_with(text, "rule"), 3); /* two of the process's and the thread's gave way */
    assert_int_equal(n_with(text, "k00="), 0);
    assert_int_equal(n_with(text, "thread_id="), 0);
    set.n_bytes = 0;
    for (unsigned i = 0; i < LABELS_MAX; i++) {
        snprintf(key, sizeof key, "k%02u", i);
        add_label(&set, key, "v", i > 0);
    }
    text = written(&set);
    assert_int_equal(n_with(text, "="), LABELS_MAX);
    assert_int_equal(n_with(text, "rule1"), 1);
    assert_int_equal(n_with(text, "rule"), 1);
    assert_int_equal(n_with(text, "k00"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_is_labelled_by_the_functions_and_modules_it_runs_through),
        cmocka_unit_test(the_frames_of_a_stack_with_rules_are_as_they_were),
        cmocka_unit_test(a_sample_of_a_known_stack_looks_at_no_rule),
        cmocka_unit_test(rules_live_on_in_the_child_of_fork),
        cmocka_unit_test(without_rules_no_stack_has_any),
        cmocka_unit_test(a_bad_rule_is_named_with_its_place),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(only_wanted_keys_are_given),
        cmocka_unit_test(trace_ids_are_given_only_when_asked_for),
        cmocka_unit_test(a_rule_stands_above_process_and_thread_and_below_all_else),
        cmocka_unit_test(beyond_32_the_lowest_give_way),
    };
    return run_each_in_a_child(tests, ARRAY_LENGTH(tests));
}
