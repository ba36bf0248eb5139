/* SPDX-License-Identifier: MIT
 * Programs that give up rights after they have started: leaks 10 x 100 B in leak_confined, says
 * "done", returns 3. Argument: chroot DIR | setuid | seccomp (open and everything that makes a
 * thread or a file fail with EPERM) | nothing. */
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common.h"

static NOINLINE void leak_confined(void)
{
    for (int i = 0; i < 10; i++)
        keep(malloc(100));
}

#define REFUSE(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void filter_system_calls(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_open),   REFUSE(SYS_openat), REFUSE(SYS_clone),   REFUSE(SYS_clone3),
        REFUSE(SYS_rename), REFUSE(SYS_futex),  REFUSE(SYS_getcwd),  REFUSE(SYS_fcntl),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    leak_confined();
    if (!strcmp(how, "chroot"))
        CHECK(argc > 2 && !chroot(argv[2]) && !chdir("/"));
    if (!strcmp(how, "setuid"))
        CHECK(!setgroups(0, NULL) && !setgid(65534) && !setuid(65534));
    if (!strcmp(how, "seccomp"))
        filter_system_calls();
    puts("done");
    return 3;
}
