/* SPDX-License-Identifier: MIT
 * A handler that allocates and frees, thousands of times a second, in threads that do the same:
 * it interrupts the profiler everywhere. Each handler call replaces its thread's object: at the
 * end one object of 40 B per thread lives from in_handler and none from in_thread.
 * glibc's malloc can't be interrupted by a handler that calls it: run with own_allocator.so.
 * Arguments: milliseconds, threads. Prints how often the handler ran. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include "common.h"

static long n_handled;
static __thread void *handlers_object;
static __thread volatile sig_atomic_t is_ready;
static int is_over;

static NOINLINE void *in_handler(void)
{
    void *object = malloc(40);
    keep(object);
    return object;
}

static NOINLINE void *in_thread(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

static void handle(int number)
{
    (void)number;
    if (!is_ready)
        return;
    void *old = handlers_object;
    handlers_object = in_handler();
    free(old);
    __atomic_fetch_add(&n_handled, 1, __ATOMIC_RELAXED);
}

static void *allocate(void *argument)
{
    void *kept[64] = {0};
    is_ready = 1;
    for (unsigned i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++) {
        free(kept[i % 64]);
        kept[i % 64] = in_thread(1 + i % 500);
        kept[i % 64] = realloc(kept[i % 64], 1 + i % 700);
    }
    is_ready = 0;
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return argument;
}

/* Not an interval timer: that ticks at the kernel's HZ. A thread that aims at each in turn. */
static void storm(pthread_t *threads, int n_threads, long ms)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < n_threads; i++)
            pthread_kill(threads[i], SIGPROF);
        struct timespec pause = {0, 50000};
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

int main(int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 1000;
    int n_threads = argc > 2 ? atoi(argv[2]) : 2;
    pthread_t threads[16];
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    CHECK(n_threads <= 16 && !sigaction(SIGPROF, &action, NULL));
    for (int i = 0; i < n_threads; i++)
        CHECK(!pthread_create(&threads[i], NULL, allocate, NULL));
    storm(threads, n_threads, ms);
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", n_handled);
    return 0;
}
