/* SPDX-License-Identifier: MIT
 * Can a program be preloaded into, see program.h.
 */
#include "cli/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "cli/memory.h"

#if __SIZEOF_POINTER__ == 8
enum { OWN_CLASS = ELFCLASS64 };
#define FOREIGN_CLASS "is a 32-bit program, our library has 64"
#else
enum { OWN_CLASS = ELFCLASS32 };
#define FOREIGN_CLASS "is a 64-bit program, our library has 32"
#endif

static const struct preload_check works = {PRELOAD_WORKS, NULL};

/* The start of a file; bytes beyond its end are zero. */
struct head {
    _Alignas(16) unsigned char bytes[4096 + 1];
    size_t n_bytes;
};

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* The file execvp would run; NULL if there is none. An empty PATH entry is the current folder. */
static char *find_program(const char *program)
{
    if (strchr(program, '/'))
        return xstrdup(program);
    const char *folder = getenv("PATH");
    if (!folder)
        folder = "/bin:/usr/bin";
    for (;;) {
        int n_bytes = (int)strcspn(folder, ":");
        char *path = xformat("%.*s%s%s", n_bytes, folder, n_bytes ? "/" : "./", program);
        if (is_program(path))
            return path;
        free(path);
        if (folder[n_bytes] == '\0')
            return NULL;
        folder += n_bytes + 1;
    }
}

static bool read_head(const char *path, struct head *ret_head)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us up */
    if (fd < 0)
        return false;
    memset(ret_head, 0, sizeof *ret_head);
    ssize_t n_bytes = read(fd, ret_head->bytes, sizeof ret_head->bytes - 1);
    close(fd);
    ret_head->n_bytes = n_bytes < 0 ? 0 : (size_t)n_bytes;
    return n_bytes > 0;
}

/* The name of the dynamic linker in the head; NULL if the program names none. */
static const char *find_interpreter(const struct head *head, bool *ret_is_readable)
{
    const Elf64_Ehdr *elf = (const Elf64_Ehdr *)head->bytes;
    *ret_is_readable = false;
    if (elf->e_phentsize != sizeof(Elf64_Phdr) || elf->e_phoff % 8 != 0 ||
        elf->e_phoff > head->n_bytes ||
        elf->e_phnum > (head->n_bytes - elf->e_phoff) / sizeof(Elf64_Phdr))
        return NULL;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(head->bytes + elf->e_phoff);
    *ret_is_readable = true;
    for (int i = 0; i < elf->e_phnum; i++)
        if (segments[i].p_type == PT_INTERP)
            return segments[i].p_offset < head->n_bytes
                       ? (const char *)head->bytes + segments[i].p_offset
                       : "";
    return NULL;
}

/* The dynamic linker itself, started by hand with a program as its argument, preloads. */
static bool is_dynamic_linker(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld.so", 5) == 0 ||
           strncmp(name, "ld-2.", 5) == 0;
}

static struct preload_check check_elf(const struct head *head, const char *path)
{
    if (head->bytes[EI_CLASS] != OWN_CLASS)
        return (struct preload_check){PRELOAD_IGNORED, FOREIGN_CLASS};
    bool is_readable;
    const char *interpreter = find_interpreter(head, &is_readable);
    if (!is_readable || (!interpreter && is_dynamic_linker(path)))
        return works;
    if (!interpreter)
        return (struct preload_check){PRELOAD_IGNORED, "is statically linked"};
    if (strstr(interpreter, "/ld-musl"))
        return (struct preload_check){PRELOAD_HARMS, "uses musl instead of glibc"};
    return works;
}

/* Programs that gain rights when they start take no preload from their caller. */
static bool gains_rights(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    if ((status.st_mode & S_ISUID) && status.st_uid != getuid())
        return true;
    if ((status.st_mode & S_ISGID) && status.st_gid != getgid())
        return true;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

/* "#!/usr/bin/env python3" runs what env finds; "#!/bin/sh -e" runs /bin/sh. */
static char *script_interpreter(struct head *head)
{
    char *words = (char *)head->bytes + 2;
    words[strcspn(words, "\n")] = '\0';
    char *rest;
    char *interpreter = strtok_r(words, " \t", &rest);
    if (!interpreter)
        return NULL;
    const char *slash = strrchr(interpreter, '/');
    char *argument = strtok_r(NULL, " \t", &rest);
    bool is_env = slash && strcmp(slash, "/env") == 0;
    return find_program(is_env && argument && argument[0] != '-' ? argument : interpreter);
}

static struct preload_check check_file(const char *path, int n_scripts)
{
    struct head head;
    if (gains_rights(path) && n_scripts == 0)
        return (struct preload_check){PRELOAD_IGNORED, "gains rights when it starts (setuid, "
                                                       "setgid or file capabilities)"};
    if (!read_head(path, &head))
        return works;
    if (head.n_bytes >= sizeof(Elf64_Ehdr) && memcmp(head.bytes, ELFMAG, SELFMAG) == 0)
        return check_elf(&head, path);
    if (memcmp(head.bytes, "#!", 2) != 0 || n_scripts > 2)
        return works;
    char *interpreter = script_interpreter(&head);
    struct preload_check check = interpreter ? check_file(interpreter, n_scripts + 1) : works;
    free(interpreter);
    return check;
}

struct preload_check program_check(const char *program)
{
    char *path = find_program(program);
    struct preload_check check = path ? check_file(path, 0) : works;
    free(path);
    return check;
}
