/* SPDX-License-Identifier: MIT
 * Ways to end, after leaking 10 x 100 B in leak_before_end. atexit handlers leak 5 more in
 * leak_at_exit where the way runs them. Argument: the way. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "common.h"

static NOINLINE void leak_before_end(void)
{
    for (int i = 0; i < 10; i++)
        keep(malloc(100));
}

static NOINLINE void leak_at_exit(void)
{
    for (int i = 0; i < 5; i++)
        keep(malloc(100));
}

static void *exit_from_thread(void *argument)
{
    leak_before_end();
    exit(3);
    return argument;
}

/* Runs on after main has left by pthread_exit; its return ends the process. */
static void *outlive_main(void *argument)
{
    struct timespec pause = {0, 100000000};
    nanosleep(&pause, NULL);
    leak_before_end();
    return argument;
}

static void start(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, run, NULL));
}

/* Says that SIGTERM is at its default, as far as the program can see, then waits for it. */
static void wait_for_signal(void)
{
    struct sigaction action;
    sigset_t pending;
    CHECK(!sigaction(SIGTERM, NULL, &action));
    CHECK(action.sa_handler == SIG_DFL && action.sa_flags == 0);
    CHECK(signal(SIGTERM, SIG_DFL) == SIG_DFL);
    CHECK(!sigpending(&pending) && !sigismember(&pending, SIGTERM));
    puts("waiting");
    fflush(stdout);
    for (;;)
        pause();
}

static void on_term(int number)
{
    (void)number;
    static const char text[] = "mine\n";
    _exit(write(1, text, sizeof text - 1) == 5 ? 42 : 43);
}

static void wait_with_handler(void)
{
    struct sigaction action = {.sa_handler = on_term, .sa_flags = SA_RESTART}, old;
    CHECK(!sigaction(SIGTERM, &action, &old) && old.sa_handler == SIG_DFL);
    CHECK(!sigaction(SIGTERM, NULL, &old));
    CHECK(old.sa_handler == on_term && old.sa_flags & SA_RESTART);
    puts("waiting");
    fflush(stdout);
    for (;;)
        pause();
}

static void wait_ignoring(void)
{
    CHECK(signal(SIGTERM, SIG_IGN) == SIG_DFL);
    CHECK(!raise(SIGTERM));
    CHECK(signal(SIGTERM, SIG_DFL) == SIG_IGN);
    raise(SIGTERM);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "return";
    atexit(leak_at_exit);
    if (!strcmp(way, "exit_from_thread"))
        return start(exit_from_thread), pause();
    if (!strcmp(way, "pthread_exit"))
        start(outlive_main), pthread_exit(NULL);
    leak_before_end();
    if (!strcmp(way, "exit"))
        exit(3);
    if (!strcmp(way, "_exit"))
        _exit(3);
    if (!strcmp(way, "_Exit"))
        _Exit(3);
    if (!strcmp(way, "quick_exit"))
        quick_exit(3);
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "syscall"))
        syscall(SYS_exit_group, 3);
    if (!strcmp(way, "segv"))
        raise(SIGSEGV);
    if (!strcmp(way, "wait"))
        wait_for_signal();
    if (!strcmp(way, "wait_with_handler"))
        wait_with_handler();
    if (!strcmp(way, "wait_ignoring"))
        wait_ignoring();
    return 3;
}
