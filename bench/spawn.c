/* SPDX-License-Identifier: MIT
 * Start-up: spawn ROUNDS PROGRAM PRELOAD... runs PROGRAM to its end once per round with each value
 * of LD_PRELOAD ("" for none), in turn, and prints the ns of each as one line a round.
 */
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "rounds.h"

enum { MAX_VARIANTS = 4, MAX_ENVIRONMENT = 64 };

extern char **environ;

static double spawn_ns(const char *program, const char *preload)
{
    char entry[4096], *arguments[] = {(char *)program, NULL}, *environment[MAX_ENVIRONMENT + 2];
    size_t n = 0;
    int status;
    pid_t pid;
    for (; environ[n] && n < MAX_ENVIRONMENT; n++)
        environment[n] = environ[n];
    snprintf(entry, sizeof entry, "LD_PRELOAD=%s", preload);
    environment[n++] = entry;
    environment[n] = NULL;
    double from = clock_ns(CLOCK_MONOTONIC);
    if (posix_spawn(&pid, program, NULL, NULL, arguments, environment))
        exit(1);
    waitpid(pid, &status, 0);
    return clock_ns(CLOCK_MONOTONIC) - from;
}

int main(int argc, char **argv)
{
    int n_variants = argc - 3;
    if (n_variants < 1 || n_variants > MAX_VARIANTS)
        return 2;
    for (long round = strtol(argv[1], NULL, 10); round > 0; round--) {
        double ns[MAX_VARIANTS];
        for (int i = 0; i < n_variants; i++) {
            int variant = (int)((round + i) % n_variants); /* each comes first in its turn */
            ns[variant] = spawn_ns(argv[2], argv[3 + variant]);
        }
        for (int i = 0; i < n_variants; i++)
            printf("%.0f%c", ns[i], i + 1 < n_variants ? ' ' : '\n');
    }
    return 0;
}
