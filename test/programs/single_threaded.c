/* SPDX-License-Identifier: MIT
 * Leaks 1000 x 1000 B, then says how many threads it has and which fds are open: a guest adds no
 * thread to a program without threads and holds no fd. */
#include <dirent.h>
#include <stdint.h>
#include <string.h>
#include "common.h"

static int entries(const char *path)
{
    DIR *directory = opendir(path);
    int n = 0;
    CHECK(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n - 2;
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        keep(malloc(1000));
    printf("threads %d fds %d\n", entries("/proc/self/task"), entries("/proc/self/fd"));
    return 0;
}
