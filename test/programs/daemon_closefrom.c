/* SPDX-License-Identifier: MIT
 * A daemon: forks, leaves its session, closes every fd, opens sockets and files on the numbers it
 * finds free, and checks that nobody else reads or writes them while it allocates. It leaks
 * 100 x 1000 B in daemon_leaks in threads and writes "fine" to the file named on its command line. */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common.h"

enum { N_PAIRS = 100 };
static int pairs[N_PAIRS][2];

static NOINLINE void daemon_leaks(int n)
{
    for (int i = 0; i < n; i++)
        keep(malloc(1000));
}

static void *thread_leaks(void *argument)
{
    daemon_leaks(50);
    return argument;
}

static void occupy_all_fds(void)
{
    for (int i = 0; i < N_PAIRS; i++)
        CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) && write(pairs[i][0], "HELLO", 5) == 5);
}

static void check_untouched(void)
{
    for (int i = 0; i < N_PAIRS; i++) {
        char text[8] = "";
        int n_waiting = -1;
        CHECK(!ioctl(pairs[i][0], FIONREAD, &n_waiting) && n_waiting == 0);
        CHECK(read(pairs[i][1], text, sizeof text) == 5 && !memcmp(text, "HELLO", 5));
    }
}

static void report(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(write(fd, "fine", 4) == 4);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    CHECK(argc > 1);
    if (fork())
        _exit(0);
    CHECK(setsid() > 0);
    closefrom(0);
    occupy_all_fds();
    daemon_leaks(50);
    CHECK(!pthread_create(&thread, NULL, thread_leaks, NULL));
    pthread_join(thread, NULL);
    check_untouched();
    report(argv[1]);
    return 0;
}
