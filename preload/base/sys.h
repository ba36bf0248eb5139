/* SPDX-License-Identifier: MIT
 * Raw system calls: no errno, no cancellation point, no other preload in between.
 *
 * Place: the floor of preload/; everybody may call it, it calls nobody.
 * Threads and signals: every function is thread-safe and async-signal-safe.
 * Failure: results below zero are -errno, as the kernel returns them.
 */
#ifndef LABELPROF_BASE_SYS_H
#define LABELPROF_BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Any system call, for the files whose few calls nobody else needs (encoder/os.c). */
long sys_call(long number, long a, long b, long c, long d, long e, long f);

/* Fresh zeroed private pages, address space only until touched. NULL if refused. */
void *sys_map(size_t bytes);
void sys_unmap(void *start, size_t bytes);
/* Small pages only: a table's first touch must not cost 2 MiB. */
void sys_no_huge_pages(void *start, size_t bytes);
/* Address space alone, not even countable as memory, until sys_open makes a part of it usable. */
void *sys_reserve(size_t bytes);
bool sys_open(void *start, size_t bytes);
/* The pages are zero again. */
void sys_wipe(void *start, size_t bytes);
/* Linux 4.14: the child of fork finds these pages zeroed. False if the kernel can't. */
bool sys_wipe_on_fork(void *start, size_t bytes);
void sys_keep_on_fork(void *start, size_t bytes);

int sys_open_read(const char *path);
long sys_read(int fd, void *buffer, size_t bytes);
long sys_write(int fd, const void *buffer, size_t bytes);
void sys_close(int fd);

int sys_getpid(void);
int sys_gettid(void);
/* The calling thread's comm: at most 15 bytes and a NUL into name[16]. */
void sys_thread_name(char name[16]);

/* Sleep while *word == expected; a wake, a signal or the timeout (ns; 0: none) ends it. */
void sys_futex_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void sys_futex_wake(uint32_t *word, int n_waiters);

uint64_t sys_monotonic_ns(void);
uint64_t sys_realtime_ns(void);

/* True if 8 bytes at address can be read; never faults (rt_sigprocmask with an invalid `how`
 * makes the kernel read the new mask before it refuses the call). */
bool sys_can_read(uintptr_t address);

#endif
