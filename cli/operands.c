/* SPDX-License-Identifier: MIT
 * The files a subcommand was given, see operands.h.
 */
#include "cli/operands.h"

#include <stdlib.h>
#include "cli/memory.h"

void operands_add(struct operands *operands, const char *item)
{
    operands->items = xgrow(operands->items, operands->n_items, sizeof *operands->items);
    operands->items[operands->n_items++] = item;
}

bool operands_check(const struct operands *operands, const struct command *command)
{
    if (operands->n_items > 0)
        return true;
    complain("%s: give a profile (usage: labelprof %s %s)", command->name, command->name,
             command->usage);
    return false;
}

void operands_free(struct operands *operands)
{
    free(operands->items);
    *operands = (struct operands){0};
}
