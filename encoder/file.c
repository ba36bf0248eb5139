/* SPDX-License-Identifier: MIT */
#include "encoder/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/sys.h"
#include "base/text.h"

static int write_checked(struct profile_sink *sink, const void *bytes, size_t n_bytes)
{
    struct file_sink *file = (struct file_sink *)sink;
    if (!os_is_ours(&file->file))
        return -EBADF;
    return os_write(&file->file, bytes, n_bytes);
}

static int set_paths(struct file_sink *file, const char *path)
{
    struct line real = line_in(file->path, sizeof(file->path));
    struct line temporary = line_in(file->temporary_path, sizeof(file->temporary_path));
    const char *slash = strrchr(path, '/');
    line_add(&real, path);
    line_add_bytes(&temporary, path, slash ? (size_t)(slash + 1 - path) : 0);
    line_add(&temporary, ".labelprof.");
    line_add_number(&temporary, (uint64_t)sys_getpid());
    line_add(&temporary, ".tmp");
    return path[0] == '\0' ? -ENOENT : real.is_cut || temporary.is_cut ? -ENAMETOOLONG : 0;
}

/* O_NONBLOCK: a FIFO nobody reads must not hold the program. O_APPEND: /dev/stdout may lead to a
 * regular file that holds the program's output already. */
static int open_direct(struct file_sink *file)
{
    return os_open(&file->file, file->path, O_WRONLY | O_NONBLOCK | O_APPEND, 0);
}

/* A file of the temporary name is left over from a process of our pid that was killed. */
static int open_temporary(struct file_sink *file)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL;
    int error = os_open(&file->file, file->temporary_path, flags, 0666);
    if (error == -EEXIST && os_unlink(file->temporary_path) == 0)
        error = os_open(&file->file, file->temporary_path, flags, 0666);
    return error;
}

int file_sink_open(struct file_sink *file, const char *path)
{
    file->sink.write = write_checked;
    file->file.fd = -1;
    int error = set_paths(file, path);
    if (error)
        return error;
    file->is_direct = os_is_special(path);
    return file->is_direct ? open_direct(file) : open_temporary(file);
}

int file_sink_commit(struct file_sink *file)
{
    int error = os_close(&file->file);
    if (!error && !file->is_direct)
        error = os_rename(file->temporary_path, file->path);
    if (error && !file->is_direct)
        os_unlink(file->temporary_path);
    return error;
}

void file_sink_abandon(struct file_sink *file)
{
    os_close(&file->file);
    if (!file->is_direct)
        os_unlink(file->temporary_path);
}
