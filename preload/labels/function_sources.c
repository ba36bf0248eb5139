/* SPDX-License-Identifier: MIT */
#include "labels/function_sources.h"

#include <string.h>

#include "base/sys.h"
#include "encoder/symbols.h"

static bool next_in_memory(void *context, struct function_name *ret)
{
    struct memory_functions *functions = context;
    struct exported_function function;
    if (!exports_next(&functions->exports, &functions->cursor, &function))
        return false;
    *ret = (struct function_name){.start = function.start,
                                  .limit = function.limit,
                                  .name = function.name,
                                  .n_bytes = function.name_bytes};
    return true;
}

static void rewind_memory(void *context)
{
    ((struct memory_functions *)context)->cursor = 0;
}

struct function_source functions_in_memory(struct memory_functions *context, uintptr_t address)
{
    context->cursor = 0;
    if (!exports_open(address, &context->exports))
        context->exports.n_symbols = 0;
    return (struct function_source){next_in_memory, rewind_memory, context};
}

/* The names are read at once: symbols come in an order that reading by pieces would not suit. */
struct file_functions {
    struct symbols symbols;
    uint64_t cursor;
    char *names;
};

enum { NAMES_BYTES_MAX = 256 << 20 };

static bool next_of_file(void *context, struct function_name *ret)
{
    struct file_functions *functions = context;
    struct symbol_wanted symbol;
    uint64_t n_bytes;
    do {
        if (!symbols_next(&functions->symbols, &functions->cursor, &symbol, &n_bytes))
            return false;
    } while (symbol.name >= functions->symbols.table.names_bytes);
    const char *name = functions->names + symbol.name;
    *ret = (struct function_name){.start = symbol.address,
                                  .limit = symbol.address + n_bytes,
                                  .name = name,
                                  .n_bytes = strcspn(name, "@")};
    return true;
}

static void rewind_file(void *context)
{
    ((struct file_functions *)context)->cursor = 0;
}

struct file_functions *file_functions_new(void)
{
    return sys_map(sizeof(struct file_functions));
}

/* One byte more than there are, so that the last one ends in NUL. */
static bool read_names(struct file_functions *context)
{
    const struct elf_symbols *table = &context->symbols.table;
    if (context->symbols.is_dynamic || table->names_bytes > NAMES_BYTES_MAX)
        return false;
    context->names = sys_map(table->names_bytes + 1);
    if (!context->names)
        return false;
    long n = os_read_at(&context->symbols.file->file, context->names, table->names_bytes,
                        table->names_offset);
    if (n == (long)table->names_bytes)
        return true;
    sys_unmap(context->names, table->names_bytes + 1);
    return false;
}

bool file_functions_open(struct file_functions *context, const struct profile_mapping *mapping,
                         struct function_source *ret_source)
{
    if (!symbols_open(&context->symbols, mapping))
        return false;
    context->cursor = 0;
    *ret_source = (struct function_source){next_of_file, rewind_file, context};
    if (read_names(context))
        return true;
    symbols_close(&context->symbols);
    return false;
}

void file_functions_close(struct file_functions *context)
{
    sys_unmap(context->names, context->symbols.table.names_bytes + 1);
    symbols_close(&context->symbols);
}

void file_functions_free(struct file_functions *context)
{
    sys_unmap(context, sizeof *context);
}
