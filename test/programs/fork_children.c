/* SPDX-License-Identifier: MIT
 * fork: the child has a profile of its own, with its creator's labels; the parent's is unharmed.
 * Argument: alloc (the child leaks 50 x 100 B in child_leaks), idle (allocates nothing), exit (as
 * alloc, but ends by _exit), storm (64 forks while other threads allocate), deep (a grandchild).
 * The parent leaks 70 x 100 B in parent_leaks before and 30 after. */
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "labelprof.h"
#include "common.h"

static NOINLINE void parent_leaks(int n)
{
    for (int i = 0; i < n; i++)
        keep(malloc(100));
}

static NOINLINE void child_leaks(int n)
{
    for (int i = 0; i < n; i++)
        keep(malloc(100));
}

static NOINLINE void *inherited_leaks(void)
{
    void *object = malloc(77);
    keep(object);
    return object;
}

static void wait_for(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void run_child(const char *mode, void *inherited)
{
    if (!strcmp(mode, "idle"))
        _exit(7);
    free(inherited); /* the parent's object: no free of the child's */
    child_leaks(50);
    if (!strcmp(mode, "deep")) {
        pid_t grandchild = fork();
        if (!grandchild) {
            child_leaks(25);
            exit(7);
        }
        wait_for(grandchild);
    }
    if (!strcmp(mode, "exit"))
        _exit(7);
    exit(7);
}

static int is_over;

static void *churn(void *argument)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *object = malloc(500);
        keep(object);
        free(object);
    }
    return argument;
}

static void *child_thread(void *argument)
{
    child_leaks(5);
    return argument;
}

/* A child of a process with threads, that makes threads itself. */
static void storm(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(!pthread_create(&threads[i], NULL, churn, NULL));
    for (int i = 0; i < 64; i++) {
        pid_t child = fork();
        if (!child) {
            pthread_t thread;
            CHECK(!pthread_create(&thread, NULL, child_thread, NULL));
            pthread_join(thread, NULL);
            child_leaks(45);
            exit(7);
        }
        wait_for(child);
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "alloc";
    labelprof_set("family", "smith");
    void *inherited = inherited_leaks();
    parent_leaks(70);
    if (!strcmp(mode, "storm")) {
        storm();
    } else {
        pid_t child = fork();
        if (!child)
            run_child(mode, inherited);
        wait_for(child);
    }
    parent_leaks(30);
    return 0;
}
