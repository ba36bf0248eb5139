/* SPDX-License-Identifier: MIT
 * The files a subcommand was given, in order.
 *
 * Threads: one. Failure: none (memory.h), but operands_check, which says what is missing.
 */
#ifndef LABELPROF_CLI_OPERANDS_H
#define LABELPROF_CLI_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>
#include "cli/commands.h"

struct operands {
    const char **items; /* the strings are argv's */
    size_t n_items;
};

void operands_add(struct operands *operands, const char *item);

/* At least one profile: else a message. */
bool operands_check(const struct operands *operands, const struct command *command);

void operands_free(struct operands *operands);

#endif
