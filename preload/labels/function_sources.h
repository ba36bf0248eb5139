/* SPDX-License-Identifier: MIT
 * The functions of a module with their names: from its file, or from memory.
 *
 * Threads: one at a time per context. Signals: safe in memory; of a file, only where files may be
 * opened. Allocation: one mapping for a file_functions. Failure: no functions.
 */
#ifndef LABELPROF_LABELS_FUNCTION_SOURCES_H
#define LABELPROF_LABELS_FUNCTION_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoder/profile_writer.h"
#include "unwind/exports.h"

struct function_name {
    uintptr_t start, limit;
    const char *name; /* without a symbol version; valid until the next one */
    size_t n_bytes;
};

/* In any order, more than once. */
struct function_source {
    bool (*next)(void *context, struct function_name *ret); /* false: no more */
    void (*rewind)(void *context);
    void *context;
};

/* What the object at an address exports. */
struct memory_functions {
    struct exports exports;
    uint32_t cursor;
};
struct function_source functions_in_memory(struct memory_functions *context, uintptr_t address);

/* What the full symbol table of a file, or of its separate debug file, has. False: it has none. */
struct file_functions;
struct file_functions *file_functions_new(void); /* NULL: no memory */
bool file_functions_open(struct file_functions *context, const struct profile_mapping *mapping,
                         struct function_source *ret_source);
void file_functions_close(struct file_functions *context);
void file_functions_free(struct file_functions *context);

#endif
