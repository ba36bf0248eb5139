/* SPDX-License-Identifier: MIT
 * vfork, posix_spawn, system and popen from a program with threads that allocate: nobody is
 * harmed. The parent leaks 100 x 100 B in parent_leaks. Argument: rounds. */
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"

extern char **environ;
static int is_over;

static NOINLINE void parent_leaks(void)
{
    keep(malloc(100));
}

static void *churn(void *argument)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        void *object = malloc(500);
        keep(object);
        free(object);
    }
    return argument;
}

static void expect_exit(pid_t child, int expected)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void by_vfork(void)
{
    pid_t child = vfork();
    if (!child) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    expect_exit(child, 0);
    child = vfork();
    if (!child)
        _exit(3); /* through our door, in the parent's memory */
    expect_exit(child, 3);
}

static void by_posix_spawn(void)
{
    char *argv[] = {"false", NULL};
    pid_t child;
    CHECK(!posix_spawn(&child, "/bin/false", NULL, NULL, argv, environ));
    expect_exit(child, 1);
}

static void by_shell(void)
{
    char line[64] = "";
    FILE *pipe;
    CHECK(WEXITSTATUS(system("exit 5")) == 5);
    pipe = popen("echo hello", "r");
    CHECK(pipe && fgets(line, sizeof line, pipe) && !strcmp(line, "hello\n"));
    CHECK(pclose(pipe) == 0);
}

int main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 10;
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, churn, NULL));
    for (int i = 0; i < n_rounds; i++) {
        by_vfork();
        by_posix_spawn();
        by_shell();
        for (int j = 0; j < 100 / n_rounds; j++)
            parent_leaks();
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
