/* SPDX-License-Identifier: MIT
 * A file that appears whole or not at all: a temporary name beside it, then a rename.
 *
 * Raw system calls only. The fd is moved to a high number, close-on-exec, and checked to be still
 * ours (device and inode) before each write, so that a program closing or reusing fds behind our
 * back is never written to.
 * Failure: -errno; the temporary file is removed.
 */
#ifndef LABELPROF_ENCODER_FILE_H
#define LABELPROF_ENCODER_FILE_H

#include <limits.h>
#include <stdint.h>
#include "encoder/profile_writer.h"

struct file_sink {
    struct profile_sink sink; /* first member: a file_sink is a profile_sink */
    char path[PATH_MAX];
    char temporary_path[PATH_MAX];
    int fd;
    uint64_t device, inode;
};

int file_sink_open(struct file_sink *file, const char *path);
int file_sink_commit(struct file_sink *file); /* rename into place */
void file_sink_abandon(struct file_sink *file);

#endif
