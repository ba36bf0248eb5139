/* SPDX-License-Identifier: MIT
 * libunwind as a compiler of rules, for the addresses whose description cfi.c can't express.
 *
 * Place: rules → compile. Loaded privately and late: loading costs a third of a millisecond, and
 * dlopen inside malloc can deadlock; so until the owner lets it load, such a stack is truncated.
 * Threads: safe. Signals and allocation: see compile.c. Failure: RULE_NONE.
 */
#ifndef LABELPROF_UNWIND_COMPILE_H
#define LABELPROF_UNWIND_COMPILE_H

#include <stdbool.h>
#include <stdint.h>
#include "unwind/cfi.h"
#include "unwind/walk.h"

/* False: not now (too little stack), so don't remember the answer. */
bool compile_rule(const struct cfi_tables *tables, uintptr_t address, uintptr_t stack_left_bytes,
                  uint64_t *ret_rule);

/* Loads libunwind if compile_rule was ever asked. True: the answers may differ from now on. */
bool compile_load_if_wanted(void);

enum unwind_compiler compile_state(void);

#endif
