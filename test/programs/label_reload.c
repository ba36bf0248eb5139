/* SPDX-License-Identifier: MIT
 * Threads allocate while the library that their labels lie in is unloaded under them, again and
 * again. Arguments: rounds, writer library. */
#include <dlfcn.h>
#include <pthread.h>
#include "labelprof.h"
#include "writers.h"

enum { N_THREADS = 3, N_OBJECTS = 200 };

typedef void set_function(const void *labels);

static pthread_barrier_t barrier;
static int n_rounds;
static set_function *set;
static struct otel_record *record;

static NOINLINE void allocate(void)
{
    for (int i = 0; i < N_OBJECTS; i++) {
        void *object = malloc(100);
        keep(object);
        free(object);
    }
}

static void *run(void *unused)
{
    (void)unused;
    for (int i = 0; i < n_rounds; i++) {
        pthread_barrier_wait(&barrier);
        set(record);
        pthread_barrier_wait(&barrier);
        allocate(); /* beside dlclose */
    }
    return NULL;
}

static void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK(library);
    set = (set_function *)dlsym(library, "writer_set");
    record = ((struct otel_record * (*)(void)) dlsym(library, "writer_record"))();
    record->valid = 1;
    record->attributes_bytes = 0;
    otel_add_text(record, 0, "acme");
    return library;
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"tenant"};
    pthread_t threads[N_THREADS];
    CHECK(argc == 3);
    n_rounds = atoi(argv[1]);
    otel_publish(keys, 1);
    pthread_barrier_init(&barrier, NULL, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run, NULL) == 0);
    for (int i = 0; i < n_rounds; i++) {
        void *library = load(argv[2]);
        CHECK(labelprof_dump("heap", "ignored.dump") == 0); /* finds the library */
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        CHECK(dlclose(library) == 0);
    }
    for (int i = 0; i < N_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
