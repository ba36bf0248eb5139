/* SPDX-License-Identifier: MIT */
#include "encoder/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/sys.h"

/* The kernel's struct stat is libc's on x86-64; fstat itself would set errno. */
static int stat_fd(int fd, struct stat *st)
{
    return (int)sys_call(SYS_fstat, fd, (long)st, 0, 0, 0, 0);
}

/* High enough that no program expects the number, low enough that the kernel's table of fds,
 * which is as long as its highest entry, stays small. */
static int high_fd_minimum(void)
{
    struct rlimit limit = {0, 0};
    sys_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0);
    if (limit.rlim_cur >= 1024)
        return 1000;
    return limit.rlim_cur > 64 ? (int)limit.rlim_cur - 24 : 3;
}

static int move_up(int fd)
{
    int up = (int)sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, high_fd_minimum(), 0, 0, 0);
    if (up < 0)
        up = (int)sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3, 0, 0, 0);
    if (up < 0)
        return fd;
    sys_close(fd);
    return up;
}

int os_open(struct os_file *file, const char *path, int flags, int mode)
{
    struct stat st;
    int fd, error;
    file->fd = -1;
    do {
        fd = (int)sys_call(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC | O_NOCTTY, mode, 0,
                           0);
    } while (fd == -EINTR);
    if (fd < 0)
        return fd;
    fd = move_up(fd);
    error = stat_fd(fd, &st);
    if (error) {
        sys_close(fd);
        return error;
    }
    *file = (struct os_file){fd, S_ISREG(st.st_mode), st.st_dev, st.st_ino, (uint64_t)st.st_size};
    return 0;
}

bool os_is_ours(const struct os_file *file)
{
    struct stat st;
    return file->fd >= 0 && stat_fd(file->fd, &st) == 0 && st.st_dev == file->device &&
           st.st_ino == file->inode;
}

int os_close(struct os_file *file)
{
    int error = -EBADF;
    if (os_is_ours(file))
        error = (int)sys_call(SYS_close, file->fd, 0, 0, 0, 0, 0);
    file->fd = -1;
    return error == -EINTR ? 0 : error; /* Linux has closed it all the same */
}

long os_read_at(const struct os_file *file, void *buffer, size_t n_bytes, uint64_t offset)
{
    size_t n_done = 0;
    while (n_done < n_bytes) {
        long n = sys_call(SYS_pread64, file->fd, (long)buffer + (long)n_done,
                          (long)(n_bytes - n_done), (long)(offset + n_done), 0, 0);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        n_done += (size_t)n;
    }
    return (long)n_done;
}

static int wait_for_room(int fd)
{
    struct pollfd poll = {fd, POLLOUT, 0};
    long n = sys_call(SYS_poll, (long)&poll, 1, OS_STALL_MS, 0, 0, 0);
    return n == 0 ? -ETIMEDOUT : n < 0 && n != -EINTR ? (int)n : 0;
}

int os_write(const struct os_file *file, const void *bytes, size_t n_bytes)
{
    const char *next = bytes;
    while (n_bytes > 0) {
        long n = sys_write(file->fd, next, n_bytes);
        if (n == -EAGAIN)
            n = wait_for_room(file->fd);
        else if (n == 0)
            n = -EIO;
        if (n < 0 && n != -EINTR)
            return (int)n;
        if (n > 0) {
            next += n;
            n_bytes -= (size_t)n;
        }
    }
    return 0;
}

int os_rename(const char *from, const char *to)
{
    return (int)sys_call(SYS_rename, (long)from, (long)to, 0, 0, 0, 0);
}

int os_unlink(const char *path)
{
    return (int)sys_call(SYS_unlink, (long)path, 0, 0, 0, 0, 0);
}

/* /dev/stdout is a link that may lead to a regular file: a rename would replace the link. */
bool os_is_special(const char *path)
{
    struct stat st;
    if (sys_call(SYS_stat, (long)path, (long)&st, 0, 0, 0, 0) != 0)
        return false;
    if (!S_ISREG(st.st_mode))
        return true;
    bool is_of_the_kernel = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    return is_of_the_kernel && sys_call(SYS_lstat, (long)path, (long)&st, 0, 0, 0, 0) == 0 &&
           S_ISLNK(st.st_mode);
}
