/* SPDX-License-Identifier: MIT
 * N threads, each with one token: allocate the next, then free the last. At every instant between
 * N and 2N tokens exist. Meanwhile the main thread asks for dumps.
 * Arguments: threads, dumps, bytes of a token. */
#include <pthread.h>
#include "labelprof.h"
#include "common.h"

static pthread_barrier_t everyone_holds_one;
static int is_over;
static size_t token_bytes;

static NOINLINE void *new_token(void)
{
    void *token = malloc(token_bytes);
    keep(token);
    return token;
}

static void *mover(void *argument)
{
    void *token = new_token();
    pthread_barrier_wait(&everyone_holds_one);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *next = new_token();
        free(token);
        token = next;
    }
    pthread_barrier_wait(&everyone_holds_one);
    free(token);
    return argument;
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 4;
    int n_dumps = argc > 2 ? atoi(argv[2]) : 1000;
    pthread_t threads[64];
    token_bytes = argc > 3 ? atoi(argv[3]) : 64;
    CHECK(n_threads <= 64);
    CHECK(!pthread_barrier_init(&everyone_holds_one, NULL, n_threads + 1));
    for (int i = 0; i < n_threads; i++)
        CHECK(!pthread_create(&threads[i], NULL, mover, NULL));
    pthread_barrier_wait(&everyone_holds_one);
    for (int i = 0; i < n_dumps; i++)
        CHECK(!labelprof_dump("heap", NULL));
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&everyone_holds_one);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
