/* SPDX-License-Identifier: MIT
 * What the encoder asks of the kernel beyond base/sys.h: files by fd, watched for theft.
 *
 * A program may close or reuse any fd at any moment (closefrom, daemonize). An os_file remembers
 * device and inode, so that every use can check that the number still means our file.
 * Threads and signals: async-signal-safe. Failure: -errno.
 */
#ifndef LABELPROF_ENCODER_OS_H
#define LABELPROF_ENCODER_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os_file {
    int fd; /* -1: not open */
    bool is_regular;
    uint64_t device, inode, n_bytes; /* as they were when opened */
};

/* Opens with O_CLOEXEC, moves the fd out of the program's way, and looks what it is. */
int os_open(struct os_file *file, const char *path, int flags, int mode);
/* The fd is still open and still the file we opened. */
bool os_is_ours(const struct os_file *file);
/* Closes what is ours, else nothing. The error of close matters on network file systems. */
int os_close(struct os_file *file);

/* Reads up to n_bytes at `offset`, fewer at the end of the file. */
long os_read_at(const struct os_file *file, void *buffer, size_t n_bytes, uint64_t offset);
/* Writes everything, resuming short writes. A pipe whose reader makes no room for
 * OS_STALL_MS is given up: -ETIMEDOUT. */
int os_write(const struct os_file *file, const void *bytes, size_t n_bytes);
enum { OS_STALL_MS = 5000 };

int os_rename(const char *from, const char *to);
int os_unlink(const char *path);
/* True if path leads to something else than a regular file, or is a link in /dev or /proc. */
bool os_is_special(const char *path);

#endif
