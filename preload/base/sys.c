/* SPDX-License-Identifier: MIT */
#include "base/sys.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#ifndef __x86_64__
#error "labelprof's raw system calls are written for x86-64 Linux"
#endif

/* The kernel's own convention: six arguments, -errno back; libc's errno is never touched. */
long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

void *sys_map(size_t bytes)
{
    long at = sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

void *sys_reserve(size_t bytes)
{
    long at = sys_call(SYS_mmap, 0, (long)bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

bool sys_open(void *start, size_t bytes)
{
    return sys_call(SYS_mprotect, (long)start, (long)bytes, PROT_READ | PROT_WRITE, 0, 0, 0) == 0;
}

void sys_no_huge_pages(void *start, size_t bytes)
{
    sys_call(SYS_madvise, (long)start, (long)bytes, MADV_NOHUGEPAGE, 0, 0, 0);
}

void sys_wipe(void *start, size_t bytes)
{
    sys_call(SYS_madvise, (long)start, (long)bytes, MADV_DONTNEED, 0, 0, 0);
}

void sys_keep_on_fork(void *start, size_t bytes)
{
    sys_call(SYS_madvise, (long)start, (long)bytes, MADV_KEEPONFORK, 0, 0, 0);
}

void sys_unmap(void *start, size_t bytes)
{
    sys_call(SYS_munmap, (long)start, (long)bytes, 0, 0, 0, 0);
}

bool sys_wipe_on_fork(void *start, size_t bytes)
{
    return sys_call(SYS_madvise, (long)start, (long)bytes, MADV_WIPEONFORK, 0, 0, 0) == 0;
}

int sys_open_read(const char *path)
{
    return (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

long sys_read(int fd, void *buffer, size_t bytes)
{
    return sys_call(SYS_read, fd, (long)buffer, (long)bytes, 0, 0, 0);
}

long sys_write(int fd, const void *buffer, size_t bytes)
{
    return sys_call(SYS_write, fd, (long)buffer, (long)bytes, 0, 0, 0);
}

void sys_close(int fd)
{
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

int sys_getpid(void)
{
    return (int)sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

int sys_gettid(void)
{
    return (int)sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

void sys_thread_name(char name[16])
{
    if (sys_call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0, 0, 0) != 0)
        name[0] = '\0';
    name[15] = '\0';
}

void sys_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    sys_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, timeout_ns ? (long)&timeout : 0, 0,
             0);
}

void sys_futex_wake(uint32_t *word, int n_waiters)
{
    sys_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, n_waiters, 0, 0, 0);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0, 0};
    clock_gettime(clock, &now); /* the vDSO: no system call, and it can't fail for these clocks */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sys_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t sys_realtime_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

bool sys_can_read(uintptr_t address)
{
    const long kernel_sigset_bytes = 8;
    if (address == 0) /* "no set", to the kernel */
        return false;
    return sys_call(SYS_rt_sigprocmask, ~0L, (long)address, 0, kernel_sigset_bytes, 0, 0) != -14;
}
