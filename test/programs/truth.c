/* SPDX-License-Identifier: MIT
 * A program whose heap is known to the byte; prints what the profile must say.
 *
 *   leak_in_a     300 MiB live, tenant=acme, sizes from 16 B to 1 MiB
 *   leak_in_b     100 MiB live in equal blocks of 48 B, tenant=globex
 *   churn_in_c    10 GiB allocated and freed at once, tenant=initech
 *   make_in_d     allocated by one thread (tenant=hooli), three of four freed by another
 *   sizes_in_e    1 B to 1 GiB, every other one freed, no tenant
 *
 * Arguments, all optional: a_mib= b_mib= b_bytes= c_mib= d_objects= e=0|1
 * Output: one JSON object {function: {"label": value or null, "sizes": {size: [made, live]}}}.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include "labelprof.h"
#include "common.h"

enum { MAX_SIZES = 256, MIB = 1 << 20 };

struct tally {
    const char *function, *tenant;
    int n_sizes;
    size_t sizes[MAX_SIZES];
    long made[MAX_SIZES], live[MAX_SIZES];
};

static struct tally a = {.function = "leak_in_a", .tenant = "acme"};
static struct tally b = {.function = "leak_in_b", .tenant = "globex"};
static struct tally c = {.function = "churn_in_c", .tenant = "initech"};
static struct tally d = {.function = "make_in_d", .tenant = "hooli"};
static struct tally e = {.function = "sizes_in_e"};

static void count(struct tally *tally, size_t size, long made, long live)
{
    int i = 0;
    while (i < tally->n_sizes && tally->sizes[i] != size)
        i++;
    CHECK(i < MAX_SIZES);
    tally->n_sizes += i == tally->n_sizes;
    tally->sizes[i] = size;
    tally->made[i] += made;
    tally->live[i] += live;
}

static void print_tally(const struct tally *tally, const char *end)
{
    printf("\"%s\": {\"label\": ", tally->function);
    if (tally->tenant)
        printf("\"%s\"", tally->tenant);
    else
        printf("null");
    printf(", \"sizes\": {");
    for (int i = 0; i < tally->n_sizes; i++)
        printf("%s\"%zu\": [%ld, %ld]", i ? ", " : "", tally->sizes[i], tally->made[i],
               tally->live[i]);
    printf("}}%s\n", end);
}

static NOINLINE void *leak_in_a(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

static NOINLINE void *leak_in_b(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

static NOINLINE void churn_in_c(size_t size)
{
    void *object = malloc(size);
    keep(object);
    free(object);
}

static NOINLINE void *make_in_d(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

static NOINLINE void *sizes_in_e(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

/* Exactly total_bytes, in a fixed cycle of sizes; the last object makes up the difference. */
static NOINLINE void leak_a(size_t total_bytes)
{
    static const size_t mix[] = {16, 100, 512, 3000, 16384, 100000, MIB};
    for (int i = 0; total_bytes; i = (i + 1) % 7) {
        size_t size = mix[i] < total_bytes ? mix[i] : total_bytes;
        CHECK(leak_in_a(size));
        count(&a, size, 1, 1);
        total_bytes -= size;
    }
}

static NOINLINE void leak_b(size_t total_bytes, size_t size)
{
    long n = total_bytes / size;
    for (long i = 0; i < n; i++)
        CHECK(leak_in_b(size));
    count(&b, size, n, n);
}

static NOINLINE void churn_c(size_t total_bytes)
{
    static const size_t mix[] = {24, 1000, 8000, 60000};
    long rounds = total_bytes / (24 + 1000 + 8000 + 60000);
    for (long i = 0; i < rounds; i++)
        for (int j = 0; j < 4; j++)
            churn_in_c(mix[j]);
    for (int j = 0; j < 4; j++)
        count(&c, mix[j], rounds, 0);
}

static NOINLINE void sizes_e(void)
{
    for (int lg = 0; lg <= 30; lg++) {
        size_t size = (size_t)1 << lg;
        long n = lg < 10 ? 1000 : lg < 20 ? 64 : 2;
        for (long i = 0; i < n; i++) {
            void *object = sizes_in_e(size);
            CHECK(object);
            if (i % 2)
                free(object);
        }
        count(&e, size, n, n / 2);
    }
}

/* A queue of one batch, handed from the maker to the freer. */
enum { BATCH = 1000 };
static void *batch[BATCH];
static int is_full, is_over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void await(int full)
{
    pthread_mutex_lock(&mutex);
    while (is_full != full && !is_over)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void hand(int full, int over)
{
    pthread_mutex_lock(&mutex);
    is_full = full;
    is_over = over;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static NOINLINE void *maker(void *argument)
{
    static const size_t mix[] = {8, 200, 5000, 70000};
    long n_objects = (long)(intptr_t)argument;
    labelprof_set("tenant", "hooli");
    for (long made = 0; made < n_objects; made += BATCH) {
        await(0);
        for (int i = 0; i < BATCH; i++)
            CHECK(batch[i] = make_in_d(mix[i % 16 / 4]));
        hand(1, 0);
    }
    await(0);
    hand(0, 1);
    return NULL;
}

static NOINLINE void *freer(void *argument)
{
    static const size_t mix[] = {8, 200, 5000, 70000};
    (void)argument;
    for (await(1); is_full; await(1)) {
        for (int i = 0; i < BATCH; i++) {
            if (i % 4)
                free(batch[i]);
            count(&d, mix[i % 16 / 4], 1, i % 4 == 0);
        }
        hand(0, 0);
    }
    return NULL;
}

static long option(int argc, char **argv, const char *name, long otherwise)
{
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
            return atol(argv[i] + n + 1);
    return otherwise;
}

static void run_d(long n_objects)
{
    pthread_t threads[2];
    CHECK(!pthread_create(&threads[0], NULL, maker, (void *)(intptr_t)n_objects));
    CHECK(!pthread_create(&threads[1], NULL, freer, NULL));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

int main(int argc, char **argv)
{
    run_d(option(argc, argv, "d_objects", 20000));
    if (option(argc, argv, "e", 1))
        sizes_e();
    labelprof_set("tenant", "acme");
    leak_a((size_t)option(argc, argv, "a_mib", 300) * MIB);
    labelprof_set("tenant", "globex");
    leak_b((size_t)option(argc, argv, "b_mib", 100) * MIB, option(argc, argv, "b_bytes", 48));
    labelprof_set("tenant", "initech");
    churn_c((size_t)option(argc, argv, "c_mib", 10240) * MIB);
    labelprof_unset("tenant");
    printf("{");
    print_tally(&a, ",");
    print_tally(&b, ",");
    print_tally(&c, ",");
    print_tally(&d, ",");
    print_tally(&e, "}");
    return 0;
}
