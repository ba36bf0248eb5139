/* SPDX-License-Identifier: MIT
 * What can be seen of a program before it runs: does the dynamic linker get to preload into it?
 *
 * Reads the ELF header and the file's mode, no more. Threads: one.
 * Failure: what can't be read is taken for a program that can be profiled; exec has the last word.
 */
#ifndef LABELPROF_CLI_PROGRAM_H
#define LABELPROF_CLI_PROGRAM_H

enum preload_verdict {
    PRELOAD_WORKS,
    PRELOAD_IGNORED, /* harmless: the programs it starts may still be profiled */
    PRELOAD_HARMS,   /* the program would not start with our library */
};

struct preload_check {
    enum preload_verdict verdict;
    const char *reason; /* completes "PROGRAM ..."; NULL if it works */
};

/* `program` as execvp takes it: a path, or a name to look up in PATH. For a script, what counts
 * is its interpreter. */
struct preload_check program_check(const char *program);

#endif
