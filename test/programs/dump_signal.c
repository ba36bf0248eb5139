/* SPDX-License-Identifier: MIT
 * Leaks 100 x 100 B in leak_here, says "ready", then sleeps until its stdin ends: for dumps asked
 * for from outside. With "own" it has a handler of its own for SIGUSR2, which says "mine"; with
 * "threads" other threads allocate meanwhile. Every sleep must last as long as it was meant to. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "common.h"

static int is_over;

static NOINLINE void leak_here(void)
{
    keep(malloc(100));
}

static void say(const char *text)
{
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

static void on_usr2(int number)
{
    (void)number;
    say("mine\n");
}

static void *churn(void *argument)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *object = malloc(300);
        keep(object);
        free(object);
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    char byte;
    const char *mode = argc > 1 ? argv[1] : "";
    struct sigaction action = {.sa_handler = on_usr2, .sa_flags = SA_RESTART};
    if (!strcmp(mode, "own"))
        CHECK(!sigaction(SIGUSR2, &action, NULL));
    if (!strcmp(mode, "threads"))
        CHECK(!pthread_create(&thread, NULL, churn, NULL));
    for (int i = 0; i < 100; i++)
        leak_here();
    say("ready\n");
    CHECK(read(0, &byte, 1) == 0); /* not EINTR: the dump's handler restarts calls */
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    if (!strcmp(mode, "threads"))
        pthread_join(thread, NULL);
    return 0;
}
