/* SPDX-License-Identifier: MIT
 * A file that appears whole or not at all: a temporary name beside it, then a rename.
 *
 * Raw system calls only. The fd is moved to a high number, close-on-exec, and checked to be still
 * ours (device and inode) before each write, so that a program closing or reusing fds behind our
 * back is never written to.
 * A path that leads to no regular file (/dev/stdout, a FIFO) is written to directly; one whose
 * reader does not read is given up after OS_STALL_MS.
 * Threads: one file_sink per thread. Signals: safe; SIGPIPE and SIGXFSZ are the caller's to block.
 * Failure: -errno. file_sink_open and file_sink_commit leave nothing behind when they fail; after
 * a failed write, call file_sink_abandon.
 */
#ifndef LABELPROF_ENCODER_FILE_H
#define LABELPROF_ENCODER_FILE_H

#include <limits.h>
#include <stdbool.h>
#include "encoder/os.h"
#include "encoder/profile_writer.h"

struct file_sink {
    struct profile_sink sink; /* first member: a file_sink is a profile_sink */
    char path[PATH_MAX];
    char temporary_path[PATH_MAX];
    struct os_file file;
    bool is_direct; /* no temporary: the path leads to a device, a FIFO, a terminal */
};

int file_sink_open(struct file_sink *file, const char *path);
int file_sink_commit(struct file_sink *file); /* rename into place */
void file_sink_abandon(struct file_sink *file);

#endif
