/* SPDX-License-Identifier: MIT
 * 1,000 short threads, every tenth on a stack of PTHREAD_STACK_MIN; each leaks one object of
 * 100 B in in_short_thread or in_tiny_stack and churns 50 more, some end by pthread_exit, some
 * are detached. */
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include "common.h"

static sem_t ended;

static NOINLINE void in_short_thread(void)
{
    keep(malloc(100));
}

static NOINLINE void in_tiny_stack(void)
{
    keep(malloc(100));
}

static void churn(void)
{
    for (int i = 0; i < 50; i++) {
        void *object = malloc(i * 10);
        keep(object);
        free(object);
    }
}

static void *short_thread(void *argument)
{
    in_short_thread();
    churn();
    sem_post(&ended);
    if (argument)
        pthread_exit(argument);
    return NULL;
}

static void *tiny_thread(void *argument)
{
    in_tiny_stack();
    churn();
    sem_post(&ended);
    return argument;
}

static void start_one(int i)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int is_tiny = i % 10 == 0, is_detached = i % 3 == 0;
    CHECK(!pthread_attr_init(&attributes));
    if (is_tiny)
        CHECK(!pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN));
    if (is_detached)
        CHECK(!pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED));
    CHECK(!pthread_create(&thread, &attributes, is_tiny ? tiny_thread : short_thread,
                          i % 2 ? &ended : NULL));
    pthread_attr_destroy(&attributes);
    if (!is_detached)
        CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
    CHECK(!sem_init(&ended, 0, 0));
    for (int i = 0; i < 1000; i++)
        start_one(i);
    for (int i = 0; i < 1000; i++)
        sem_wait(&ended);
    return 0;
}
