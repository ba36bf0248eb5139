/* SPDX-License-Identifier: MIT
 * A file appears whole or not at all, whatever happens to the disk or to our fd. */
#include "test/unit/profile_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "encoder/file.h"

static char directory[256];

static int enter_directory(void **state)
{
    (void)state;
    const char *root = getenv("TMPDIR");
    snprintf(directory, sizeof(directory), "%s/labelprof-file-XXXXXX", root ? root : "/tmp");
    return mkdtemp(directory) && chdir(directory) == 0 ? 0 : -1;
}

static int leave_directory(void **state)
{
    (void)state;
    return chdir("/") == 0 && rmdir(directory) == 0 ? 0 : -1;
}

/* How many entries the directory has; with `.` and `..` none means 0. */
static int n_entries(void)
{
    int n = -2;
    DIR *entries = opendir(".");
    assert_non_null(entries);
    while (readdir(entries))
        n++;
    closedir(entries);
    return n;
}

static int n_open_fds(void)
{
    int n = 0;
    DIR *entries = opendir("/proc/self/fd");
    assert_non_null(entries);
    while (readdir(entries))
        n++;
    closedir(entries);
    return n;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *text)
{
    char content[256] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(content, text);
}

static int put(struct file_sink *file, const char *text)
{
    return file->sink.write(&file->sink, text, strlen(text));
}

static void the_file_appears_at_commit_with_the_umask_applied(void **state)
{
    (void)state;
    struct file_sink file;
    struct stat st;
    mode_t old = umask(027);
    assert_int_equal(file_sink_open(&file, "out"), 0);
    umask(old);
    assert_int_equal(put(&file, "one "), 0);
    assert_int_equal(put(&file, "two"), 0);
    assert_int_equal(access("out", F_OK), -1);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_content("out", "one two");
    assert_int_equal(stat("out", &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(n_entries(), 1);
    unlink("out");
}

static void the_fd_is_high_and_closed_on_exec_and_gone_afterwards(void **state)
{
    (void)state;
    struct file_sink file;
    int n_before = n_open_fds();
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_true(fcntl(file.file.fd, F_GETFD) & FD_CLOEXEC);
    int lowest = open("/dev/null", O_RDONLY);
    assert_true(lowest < file.file.fd); /* the program's next number is what it would have been */
    close(lowest);
    file_sink_abandon(&file);
    assert_int_equal(n_open_fds(), n_before);
    assert_int_equal(n_entries(), 0);
}

static void an_existing_file_is_replaced_only_at_commit(void **state)
{
    (void)state;
    struct file_sink file;
    write_file("out", "old");
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_int_equal(put(&file, "new"), 0);
    assert_content("out", "old");
    file_sink_abandon(&file);
    assert_content("out", "old");
    assert_int_equal(n_entries(), 1);
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_int_equal(put(&file, "new"), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_content("out", "new");
    assert_int_equal(n_entries(), 1);
    unlink("out");
}

static void an_existing_file_survives_a_full_disk(void **state)
{
    (void)state;
    int status;
    write_file("out", "old");
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {6, 6};
        struct file_sink file;
        signal(SIGXFSZ, SIG_IGN);
        if (file_sink_open(&file, "out") != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(1);
        if (put(&file, "0123") != 0 || put(&file, "456789") != -EFBIG)
            _exit(2);
        file_sink_abandon(&file);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_content("out", "old");
    assert_int_equal(n_entries(), 1);
    unlink("out");
}

static void a_stale_temporary_file_is_replaced(void **state)
{
    (void)state;
    struct file_sink file;
    char stale[64];
    snprintf(stale, sizeof(stale), ".labelprof.%d.tmp", (int)getpid());
    write_file(stale, "rubbish that is longer than the profile");
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_string_equal(file.temporary_path, stale);
    assert_int_equal(put(&file, "new"), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_content("out", "new");
    assert_int_equal(n_entries(), 1);
    unlink("out");
}

static void a_planted_link_of_the_temporary_name_is_not_followed(void **state)
{
    (void)state;
    struct file_sink file;
    char planted[64];
    snprintf(planted, sizeof(planted), ".labelprof.%d.tmp", (int)getpid());
    write_file("precious", "precious");
    assert_int_equal(symlink("precious", planted), 0);
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_int_equal(put(&file, "new"), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_content("precious", "precious");
    assert_content("out", "new");
    unlink("precious");
    unlink("out");
}

static void a_closed_fd_is_noticed(void **state)
{
    (void)state;
    struct file_sink file;
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_int_equal(put(&file, "a"), 0);
    close(file.file.fd);
    assert_int_equal(put(&file, "b"), -EBADF);
    file_sink_abandon(&file);
    assert_int_equal(n_entries(), 0);
}

static void a_reused_fd_is_neither_written_nor_closed(void **state)
{
    (void)state;
    struct file_sink file;
    assert_int_equal(file_sink_open(&file, "out"), 0);
    int theirs = open("theirs", O_WRONLY | O_CREAT, 0600), fd = file.file.fd;
    assert_int_equal(dup2(theirs, fd), fd);
    assert_int_equal(put(&file, "ours"), -EBADF);
    assert_int_equal(file_sink_commit(&file), -EBADF);
    assert_int_equal(write(fd, "theirs", 6), 6);
    assert_content("theirs", "theirs");
    assert_int_equal(access("out", F_OK), -1);
    assert_int_equal(n_entries(), 1);
    close(fd);
    close(theirs);
    unlink("theirs");
}

static void a_device_is_written_directly_and_stays_a_device(void **state)
{
    (void)state;
    struct file_sink file;
    struct stat st;
    assert_int_equal(file_sink_open(&file, "/dev/null"), 0);
    assert_int_equal(put(&file, "x"), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_int_equal(file_sink_open(&file, "/dev/full"), 0);
    assert_int_equal(put(&file, "x"), -ENOSPC);
    file_sink_abandon(&file);
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* /proc/self/fd/N leads to a regular file that has content: what we write comes after it. */
static void a_link_to_an_open_file_is_appended_to(void **state)
{
    (void)state;
    struct file_sink file;
    char path[64];
    write_file("log", "the program's own; ");
    int fd = open("log", O_WRONLY);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(file_sink_open(&file, path), 0);
    assert_int_equal(put(&file, "ours"), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_content("log", "the program's own; ours");
    close(fd);
    unlink("log");
}

static void a_fifo_without_a_reader_does_not_block(void **state)
{
    (void)state;
    struct file_sink file;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(file_sink_open(&file, "fifo"), -ENXIO);
    assert_int_equal(n_entries(), 1);
    unlink("fifo");
}

/* More than a pipe holds, to a reader that takes its time between small reads. */
static void a_fifo_with_a_slow_reader_gets_everything(void **state)
{
    (void)state;
    enum { N = 300000 };
    static char bytes[N];
    struct file_sink file;
    int status;
    assert_int_equal(mkfifo("fifo", 0600), 0);
    int keep = open("fifo", O_RDWR); /* there is a reader before the child comes to it */
    pid_t child = fork();
    if (child == 0) {
        char buffer[4096];
        size_t n_total = 0;
        int fd = open("fifo", O_RDONLY);
        while (n_total < N) {
            ssize_t n = read(fd, buffer, sizeof(buffer));
            if (n <= 0)
                break;
            n_total += (size_t)n;
            nanosleep(&(struct timespec){0, 100000}, NULL);
        }
        _exit(n_total == N ? 0 : 1);
    }
    assert_int_equal(file_sink_open(&file, "fifo"), 0);
    assert_int_equal(file.sink.write(&file.sink, bytes, N), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(keep);
    unlink("fifo");
}

static void what_cannot_be_opened_is_an_error_that_leaves_nothing(void **state)
{
    (void)state;
    struct file_sink file;
    char name[300], path[PATH_MAX + 10];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(file_sink_open(&file, ""), -ENOENT);
    assert_int_equal(file_sink_open(&file, "missing/out"), -ENOENT);
    assert_int_equal(file_sink_open(&file, name), 0); /* the temporary name is short */
    assert_int_equal(file_sink_commit(&file), -ENAMETOOLONG);
    assert_int_equal(file_sink_open(&file, path), -ENAMETOOLONG);
    assert_int_equal(file_sink_open(&file, "."), -EISDIR);
    assert_int_equal(n_entries(), 0);
}

static void a_rename_that_fails_leaves_nothing(void **state)
{
    (void)state;
    struct file_sink file;
    assert_int_equal(file_sink_open(&file, "out"), 0);
    assert_int_equal(put(&file, "x"), 0);
    assert_int_equal(mkdir("out", 0700), 0);
    assert_int_equal(file_sink_commit(&file), -EISDIR);
    assert_int_equal(n_entries(), 1);
    rmdir("out");
}

static void it_works_with_few_fds(void **state)
{
    (void)state;
    struct rlimit old, few;
    struct file_sink file;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    for (rlim_t n = 4; n <= 128; n += 31) {
        few = (struct rlimit){n, old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        int error = file_sink_open(&file, "out");
        if (!error)
            error = put(&file, "x");
        if (!error)
            error = file_sink_commit(&file);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_int_equal(error, 0);
    }
    unlink("out");
}

static void errno_is_left_alone(void **state)
{
    (void)state;
    struct file_sink file;
    errno = 4711;
    assert_int_equal(file_sink_open(&file, "missing/out"), -ENOENT);
    assert_int_equal(errno, 4711);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_appears_at_commit_with_the_umask_applied),
        cmocka_unit_test(the_fd_is_high_and_closed_on_exec_and_gone_afterwards),
        cmocka_unit_test(an_existing_file_is_replaced_only_at_commit),
        cmocka_unit_test(an_existing_file_survives_a_full_disk),
        cmocka_unit_test(a_stale_temporary_file_is_replaced),
        cmocka_unit_test(a_planted_link_of_the_temporary_name_is_not_followed),
        cmocka_unit_test(a_closed_fd_is_noticed),
        cmocka_unit_test(a_reused_fd_is_neither_written_nor_closed),
        cmocka_unit_test(a_device_is_written_directly_and_stays_a_device),
        cmocka_unit_test(a_link_to_an_open_file_is_appended_to),
        cmocka_unit_test(a_fifo_without_a_reader_does_not_block),
        cmocka_unit_test(a_fifo_with_a_slow_reader_gets_everything),
        cmocka_unit_test(what_cannot_be_opened_is_an_error_that_leaves_nothing),
        cmocka_unit_test(a_rename_that_fails_leaves_nothing),
        cmocka_unit_test(it_works_with_few_fds),
        cmocka_unit_test(errno_is_left_alone),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
