/* SPDX-License-Identifier: MIT
 * Labels by the public ABIs, no call of ours made. Arguments: a case, then the writer libraries it
 * loads. Each state of the labels leaks one object of 100 B in a function of its own. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include "labelprof.h"
#include "writers.h"

#define LEAK(name)                  \
    static NOINLINE void name(void) \
    {                               \
        keep(malloc(100));          \
    }
LEAK(leak_none)
LEAK(leak_set)
LEAK(leak_changed)
LEAK(leak_invalid)
LEAK(leak_garbage)
LEAK(leak_thread)
LEAK(leak_handler)
LEAK(leak_unloaded)
LEAK(leak_again)
LEAK(leak_api)

typedef void set_function(const void *labels);

static void *library;

static set_function *load(const char *path)
{
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    set_function *set = (set_function *)dlsym(library, "writer_set");
    CHECK(set);
    return set;
}

static const char *const keys[] = {"tenant", "route", "pprof::no", "late", "user.id"};

/* A page that can't be read, and one before it that can. */
static char *edge_of_memory(void)
{
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    return pages + 4096;
}

/* ---- OpenTelemetry ---- */

static void otel_states(set_function *set)
{
    struct otel_record *record = otel_new();
    otel_publish(keys, 3);
    leak_none();
    otel_add_text(record, 0, "acme");
    otel_add_text(record, 1, "/cart");
    otel_add_text(record, 2, "never seen");
    otel_add_text(record, 0, "globex"); /* the last one counts */
    record->attributes[record->attributes_bytes] = 0; /* half an entry: passed over */
    record->attributes_bytes++;
    memset(record->trace_id, 0xAB, 16);
    memset(record->span_id, 0xCD, 8);
    set(record);
    leak_set();
    record->valid = 0;
    leak_invalid();
    record->valid = 3;
    leak_invalid();
    record->valid = 1;
    record->attributes_bytes--;
    otel_add_text(record, 1, ""); /* no label */
    otel_publish(keys, 5);
    otel_add_text(record, 3, "known now");
    otel_add_text(record, 4, "7");
    otel_add_text(record, 9, "never known");
    leak_changed();
    CHECK(labelprof_set("tenant", "by hand") == 0);
    leak_api();
}

static void otel_full(set_function *set)
{
    struct otel_record *record = otel_new();
    char value[256];
    otel_publish(keys, 2);
    for (int i = 0; i < 255; i++) {
        snprintf(value, sizeof value, "%0253d", i);
        otel_add(record, 0, value, 253);
    }
    while (record->attributes_bytes < 65535 - 1)
        otel_add_text(record, 1, "\xC3\xA4\xFF");
    set(record);
    leak_set();
}

static void otel_garbage(set_function *set)
{
    char *edge = edge_of_memory();
    struct otel_record *record = (struct otel_record *)(edge - 28 - 4);
    otel_publish(keys, 2);
    memset(record, 0, 28);
    record->valid = 1;
    otel_add_text(record, 0, "ok");
    set(record);
    leak_set();
    record->attributes_bytes = 5000;
    leak_garbage();
    const uintptr_t pointers[] = {1, 4095, (uintptr_t)edge, (uintptr_t)edge - 10, UINTPTR_MAX - 3,
                                  UINTPTR_MAX / 2 + 1, (uintptr_t)1 << 47};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        set((const void *)pointers[i]);
        leak_garbage();
    }
}

/* ---- custom-labels ---- */

static void custom_states(set_function *set)
{
    struct custom_label labels[] = {
        custom_label("tenant", "acme"), custom_label(NULL, "hole"),
        custom_label("tenant", "second"), custom_label("bad", "a\xFFz"),
        custom_label("", "no key"), custom_label("pprof::no", "x"), custom_label("empty", ""),
        custom_label("empty", "second")};
    struct custom_set labelset = {labels, 8, 8};
    leak_none();
    set(&labelset);
    leak_set();
    struct custom_label others[] = {custom_label("route", "/")};
    labelset.storage = others; /* a writer that grows its set: storage first, then the count */
    labelset.n_labels = 1;
    leak_changed();
    set(NULL);
    leak_none();
}

static void custom_many(set_function *set)
{
    static struct custom_label labels[20000];
    static char names[20000][16], long_text[100000];
    for (int i = 0; i < 20000; i++) {
        snprintf(names[i], sizeof names[i], "k%05d", i);
        labels[i] = custom_label(names[i], names[i]);
    }
    memset(long_text, 'x', sizeof long_text - 1);
    labels[0] = custom_label("long", long_text);
    labels[1] = custom_label(long_text, "a key too long");
    labels[9999] = custom_label("nearly_last", "y");
    labels[10000] = custom_label("beyond", "y");
    struct custom_set labelset = {labels, 20000, 20000};
    set(&labelset);
    leak_set();
}

static void custom_garbage(set_function *set)
{
    char *edge = edge_of_memory();
    struct custom_label *last = (struct custom_label *)edge - 1;
    struct custom_set labelset = {last, 1000, 1000};
    *last = custom_label("tenant", "ok");
    set(&labelset);
    leak_set(); /* one label, then the end of what can be read */
    last->value.n_bytes = SIZE_MAX;
    last->value.bytes = edge - 3;
    leak_garbage();
    last->key.bytes = edge;
    leak_garbage();
    labelset.storage = (void *)(uintptr_t)0xDEAD0000BEEF0000;
    labelset.n_labels = SIZE_MAX;
    leak_garbage();
    set(edge - 8);
    leak_garbage();
    set((void *)3);
    leak_garbage();
}

static void one_label(set_function *set)
{
    struct custom_label label = custom_label("tenant", "acme");
    struct custom_set labelset = {&label, 1, 1};
    set(&labelset);
    leak_set();
}

/* The label sets of two libraries: what the first has counts, unless it has none. */
static void custom_two(set_function *first, set_function *second)
{
    struct custom_label a = custom_label("tenant", "first"), b = custom_label("tenant", "second");
    struct custom_set set_a = {&a, 1, 1}, set_b = {&b, 1, 1}, empty = {NULL, 0, 0};
    first(&set_a);
    second(&set_b);
    leak_set();
    first(&empty);
    leak_changed();
    first(NULL);
    leak_changed();
}

/* An async runtime in miniature: each poll of a task swaps the task's label set in and out. */
static void custom_polls(set_function *set)
{
    enum { N_TASKS = 8, N_POLLS = 50 };
    struct custom_label labels[N_TASKS];
    struct custom_set sets[N_TASKS];
    char names[N_TASKS][16];
    for (int i = 0; i < N_TASKS; i++) {
        snprintf(names[i], sizeof names[i], "task-%d", i);
        labels[i] = custom_label("tenant", names[i]);
        sets[i] = (struct custom_set){&labels[i], 1, 1};
    }
    for (int poll = 0; poll < N_TASKS * N_POLLS; poll++) {
        set(&sets[poll % N_TASKS]);
        leak_set();
        set(NULL);
        leak_none();
    }
}

/* ---- threads, handlers, libraries that go ---- */

static pthread_barrier_t barrier;

static void *older_thread(void *set_function_in)
{
    struct otel_record *record = otel_new();
    otel_add_text(record, 0, "of the thread");
    pthread_barrier_wait(&barrier); /* the library is loaded after this thread began */
    pthread_barrier_wait(&barrier);
    (*(set_function **)set_function_in)(record);
    leak_thread();
    return NULL;
}

static void otel_threads(const char *path)
{
    pthread_t thread;
    set_function *set = NULL;
    otel_publish(keys, 2);
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, older_thread, &set) == 0);
    pthread_barrier_wait(&barrier);
    set = load(path);
    struct otel_record *record = otel_new();
    otel_add_text(record, 0, "of main");
    set(record);
    /* A dump is one of the places where sources are looked for; the first finds the library, the
     * second, after a sample that met an unknown index, its key names. */
    CHECK(labelprof_dump("heap", "ignored.dump") == 0);
    keep(malloc(10));
    CHECK(labelprof_dump("heap", "ignored.dump") == 0);
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
    leak_set();
    set(NULL);
    leak_none();
}

/* Nobody looks by the clock (the test sees to that): a sample that finds this thread using a library
 * it doesn't know wakes the flusher. The names then need a second wake. */
static void otel_woken(const char *path)
{
    pthread_t thread;
    set_function *set = NULL;
    otel_publish(keys, 2);
    pthread_barrier_init(&barrier, NULL, 2);
    CHECK(pthread_create(&thread, NULL, older_thread, &set) == 0);
    pthread_barrier_wait(&barrier);
    set = load(path);
    struct otel_record *record = otel_new();
    otel_add_text(record, 0, "of main");
    set(record);
    for (int i = 0; i < 500; i++) {
        keep(malloc(10));
        usleep(2000);
    }
    leak_set();
    pthread_barrier_wait(&barrier);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void on_signal(int number)
{
    (void)number;
    leak_handler();
}

static void otel_in_handler(set_function *set)
{
    struct otel_record *record = otel_new();
    otel_publish(keys, 2);
    otel_add_text(record, 0, "acme");
    set(record);
    leak_set();
    CHECK(signal(SIGUSR1, on_signal) == 0);
    raise(SIGUSR1);
}

/* The thread's slot still points into a library that is gone; then the library comes again, where
 * it was, and the thread has not touched it. */
static void otel_unload(const char *path)
{
    set_function *set = load(path);
    void *(*record_of)(void) = (void *(*)(void))dlsym(library, "writer_record");
    struct otel_record *record = record_of();
    otel_publish(keys, 2);
    record->valid = 1;
    otel_add_text(record, 0, "acme");
    set(record);
    leak_set();
    CHECK(dlclose(library) == 0);
    leak_unloaded();
    set = load(path);
    leak_unloaded();
    record = otel_new();
    otel_add_text(record, 0, "again");
    set(record);
    leak_again();
}

/* The child has not the page with the names, and the parent takes its own away: both look for an
 * unknown name all the same. */
static void otel_in_child(set_function *set)
{
    struct otel_record *record = otel_new();
    struct otel_header *header = otel_publish(keys, 2);
    CHECK(madvise(header, 4096, MADV_DONTFORK) == 0);
    otel_add_text(record, 0, "acme");
    set(record);
    leak_set();
    otel_add_text(record, 9, "unknown");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) {
        CHECK(munmap(header, 4096) == 0);
        leak_again();
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        return;
    }
    leak_again();
}

int main(int argc, char **argv)
{
    const char *what = argv[1];
    CHECK(argc >= 3);
    if (strcmp(what, "otel_threads") == 0)
        otel_threads(argv[2]);
    else if (strcmp(what, "otel_woken") == 0)
        otel_woken(argv[2]);
    else if (strcmp(what, "otel_unload") == 0)
        otel_unload(argv[2]);
    else {
        set_function *set = load(argv[2]);
        strcmp(what, "otel_states") == 0      ? otel_states(set)
        : strcmp(what, "otel_full") == 0      ? otel_full(set)
        : strcmp(what, "otel_garbage") == 0   ? otel_garbage(set)
        : strcmp(what, "otel_handler") == 0   ? otel_in_handler(set)
        : strcmp(what, "otel_fork") == 0      ? otel_in_child(set)
        : strcmp(what, "custom_states") == 0  ? custom_states(set)
        : strcmp(what, "custom_many") == 0    ? custom_many(set)
        : strcmp(what, "custom_garbage") == 0 ? custom_garbage(set)
        : strcmp(what, "custom_polls") == 0   ? custom_polls(set)
        : strcmp(what, "custom_two") == 0     ? custom_two(set, load(argv[3]))
                                              : one_label(set);
    }
    return 0;
}
