/* SPDX-License-Identifier: MIT
 * The plain one: leaks COUNT objects of SIZE bytes in leak_here, then does what it is told.
 * Usage: leak COUNT SIZE [chdir DIR | dump TYPE PATH | sleep MS | raise N | more COUNT SIZE |
 *                         rlimit_fsize BYTES | rlimit_nofile N]... */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "labelprof.h"
#include "common.h"

static NOINLINE void leak_here(size_t size)
{
    keep(malloc(size));
}

static NOINLINE void leak_more(size_t size)
{
    keep(malloc(size));
}

static void sleep_ms(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left)) {
    }
}

static void limit_file_size(long bytes)
{
    struct rlimit limit = {bytes, bytes};
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
}

static void limit_open_files(long n)
{
    struct rlimit limit = {n, n};
    CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

static int step(char **argv)
{
    if (!strcmp(argv[0], "chdir"))
        return CHECK(!chdir(argv[1])), 2;
    if (!strcmp(argv[0], "sleep"))
        return sleep_ms(atol(argv[1])), 2;
    if (!strcmp(argv[0], "raise"))
        return raise(atoi(argv[1])), 2;
    if (!strcmp(argv[0], "rlimit_fsize"))
        return limit_file_size(atol(argv[1])), 2;
    if (!strcmp(argv[0], "rlimit_nofile"))
        return limit_open_files(atol(argv[1])), 2;
    if (!strcmp(argv[0], "dump")) {
        printf("dump %d\n", labelprof_dump(argv[1], strcmp(argv[2], "-") ? argv[2] : NULL));
        return 3;
    }
    CHECK(!strcmp(argv[0], "more"));
    for (long i = 0; i < atol(argv[1]); i++)
        leak_more(atol(argv[2]));
    return 3;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    for (long i = 0; i < atol(argv[1]); i++)
        leak_here(atol(argv[2]));
    for (int i = 3; i < argc;)
        i += step(argv + i);
    puts("done");
    return 0;
}
