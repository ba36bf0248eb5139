/* SPDX-License-Identifier: MIT
 * Allocation workloads, served by rounds: loop WORKLOAD [THREADS [hold|wall]].
 *
 * Processor time per operation; by the wall's clock (then of one processor) if it says "wall" or if
 * the workload waits. "hold" keeps one large block that realloc grew: under the profiler surely a
 * sample, and one that stays where the allocator put it, so that the filter's bitmap is asked.
 * THREADS > 1 runs the workload in that many threads at once, which live as long as the process.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>

#include "rounds.h"

enum {
    MAX_THREADS = 8,
    RING_BLOCKS = 10000, /* 8 MB, shared out among the threads */
    QUEUE_SLOTS = 4096,
    HELD_BYTES = 256 << 20,
};

static long n_threads = 1;

/* ---- one thread's work ---- */

static void pairs(long n, size_t size)
{
    while (n--) {
        void *p = malloc(size);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
}

static void pair_64(long n)
{
    pairs(n, 64);
}

static void pair_256(long n)
{
    pairs(n, 256);
}

static void pair_4096(long n)
{
    pairs(n, 4096);
}

static void calloc_256(long n)
{
    while (n--) {
        void *p = calloc(1, 256);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
}

static __thread uint64_t random_state;

static uint64_t random_bits(void)
{
    uint64_t x = random_state ? random_state : (uintptr_t)&random_state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return random_state = x;
}

/* 16 bytes to 4 KiB, each octave as often; 765 bytes on average. */
static size_t mixed_size(uint64_t bits)
{
    unsigned lg = 4 + (unsigned)(bits & 7);
    return (UINT64_C(1) << lg) + (bits >> 3 & ((UINT64_C(1) << lg) - 1));
}

static void ring(long n)
{
    static __thread char **blocks;
    long n_blocks = RING_BLOCKS / n_threads;
    if (!blocks)
        blocks = calloc((size_t)n_blocks, sizeof *blocks);
    while (n--) {
        uint64_t bits = random_bits();
        char **slot = &blocks[(bits >> 32) % (uint64_t)n_blocks];
        free(*slot);
        *slot = malloc(mixed_size(bits));
        **slot = 1;
    }
}

/* One operation is one call of realloc: 16 bytes to 64 KiB by half as much again, then anew. */
static void realloc_growth(long n)
{
    char *p = NULL;
    for (size_t size = 16; n--; size = size < 65536 ? size + size / 2 : 16) {
        if (size == 16) {
            free(p);
            p = NULL;
        }
        p = realloc(p, size);
        *p = 1;
    }
    free(p);
}

static __attribute__((noinline)) void deeper(long n, int left)
{
    if (left)
        deeper(n, left - 1);
    else
        pair_64(n);
    __asm__ volatile("");
}

/* 12 frames, with main and libc's. */
static void pair_at_depth_12(long n)
{
    deeper(n, 5);
}

/* ---- a block's way from one thread to another ---- */

static struct {
    _Alignas(64) long n_put;
    _Alignas(64) long n_taken;
    void *slots[QUEUE_SLOTS];
} queue;

static void produce(long n)
{
    for (long i = __atomic_load_n(&queue.n_put, __ATOMIC_RELAXED); n--; i++) {
        while (i - __atomic_load_n(&queue.n_taken, __ATOMIC_ACQUIRE) == QUEUE_SLOTS)
            sched_yield();
        queue.slots[i % QUEUE_SLOTS] = malloc(64 + random_bits() % 960);
        __atomic_store_n(&queue.n_put, i + 1, __ATOMIC_RELEASE);
    }
}

static void consume(long n)
{
    for (long i = __atomic_load_n(&queue.n_taken, __ATOMIC_RELAXED); n--; i++) {
        while (i == __atomic_load_n(&queue.n_put, __ATOMIC_ACQUIRE))
            sched_yield();
        free(queue.slots[i % QUEUE_SLOTS]);
        __atomic_store_n(&queue.n_taken, i + 1, __ATOMIC_RELEASE);
    }
}

/* ---- threads and processes ---- */

static void *nothing(void *unused)
{
    return unused;
}

static void thread_create_join(long n)
{
    pthread_t thread;
    while (n--) {
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
}

static void fork_exit(long n)
{
    int status;
    while (n--) {
        pid_t pid = fork();
        if (pid == 0)
            exit(0);
        waitpid(pid, &status, 0);
    }
}

/* ---- the table, and the team that does one workload at a time ---- */

static const struct workload {
    const char *name;
    workload_function *work, *of_other_threads;
    bool does_wait;
} workloads[] = {
    {"pair_64", pair_64, pair_64, false},
    {"pair_256", pair_256, pair_256, false},
    {"pair_4096", pair_4096, pair_4096, false},
    {"pair_at_depth_12", pair_at_depth_12, pair_at_depth_12, false},
    {"ring", ring, ring, false},
    {"calloc_256", calloc_256, calloc_256, false},
    {"realloc_growth", realloc_growth, realloc_growth, false},
    {"producer_consumer", produce, consume, true},
    {"thread_create_join", thread_create_join, NULL, true},
    {"fork_exit", fork_exit, NULL, true},
};

static const struct workload *chosen;
static long team_n;
static pthread_barrier_t before, after;

static void *team_member(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&before);
        chosen->of_other_threads(team_n);
        pthread_barrier_wait(&after);
    }
    return unused;
}

static void team_work(long n)
{
    team_n = n;
    pthread_barrier_wait(&before);
    chosen->work(n);
    pthread_barrier_wait(&after);
}

static int serve_team(void)
{
    pthread_t thread;
    long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_barrier_init(&before, NULL, (unsigned)n_threads);
    pthread_barrier_init(&after, NULL, (unsigned)n_threads);
    for (long i = 1; i < n_threads; i++)
        if (pthread_create(&thread, NULL, team_member, NULL))
            return 1;
    if (chosen->work == produce) /* an operation is a block's whole way */
        return serve_rounds(team_work, 1);
    double at_a_time = n_cpus < n_threads ? (double)n_cpus : (double)n_threads;
    bool is_wall = rounds_clock == CLOCK_MONOTONIC;
    return serve_rounds(team_work, (is_wall ? at_a_time : 1) / (double)n_threads);
}

static void hold_in_place(void)
{
    void *volatile held = realloc(malloc(HELD_BYTES / 2), HELD_BYTES);
    (void)held;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof workloads[0]; i++)
        if (strcmp(workloads[i].name, argv[1]) == 0)
            chosen = &workloads[i];
    if (argc > 2)
        n_threads = strtol(argv[2], NULL, 10);
    if (!chosen || n_threads < 1 || n_threads > MAX_THREADS)
        return 2;
    if (chosen->does_wait || (argc > 3 && strcmp(argv[3], "wall") == 0))
        rounds_clock = CLOCK_MONOTONIC;
    if (argc > 3 && strcmp(argv[3], "hold") == 0)
        hold_in_place();
    return n_threads > 1 ? serve_team() : serve_rounds(chosen->work, 1);
}
