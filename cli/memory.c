/* SPDX-License-Identifier: MIT
 * Allocation that does not fail, see memory.h.
 */
#include "cli/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"

static void *or_exit(void *pointer)
{
    if (!pointer) {
        complain("out of memory; give fewer or smaller profiles at a time");
        exit(EXIT_FAULT);
    }
    return pointer;
}

void *xcalloc(size_t n_items, size_t item_bytes)
{
    return or_exit(calloc(n_items ? n_items : 1, item_bytes));
}

char *xstrdup(const char *text)
{
    return or_exit(strdup(text));
}

char *xformat(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    return or_exit(text);
}

void *xgrow(void *items, size_t n_items, size_t item_bytes)
{
    if ((n_items & (n_items - 1)) != 0)
        return items;
    return or_exit(reallocarray(items, n_items ? 2 * n_items : 1, item_bytes));
}
