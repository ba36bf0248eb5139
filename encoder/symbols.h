/* SPDX-License-Identifier: MIT
 * Names of functions for addresses of one mapping, in one pass over the file's symbol table.
 *
 * .symtab of the file, or of its separate debug file (/usr/lib/debug/.build-id), else .dynsym. A
 * symbol names an address only if it covers it: start <= address < start + size. A file whose build
 * id is not the mapping's gives no names: it was replaced.
 * Memory: the caller's struct, 100 KiB; no mappings and no fds after symbols_close.
 * Threads: one at a time. Signals: safe. Failure: no names.
 */
#ifndef LABELPROF_ENCODER_SYMBOLS_H
#define LABELPROF_ENCODER_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/elf_file.h"
#include "encoder/profile_writer.h"

enum { SYMBOL_NAME_BYTES = 16 * 1024, SYMBOL_TIE_BYTES = 512 };

struct symbols {
    struct elf_file own, debug;
    struct elf_file *file; /* the one with the table below */
    struct elf_symbols table;
    bool is_dynamic; /* the table is .dynsym: exported and imported names only */
    uint64_t shift; /* run-time address + shift = address in the table */
    size_t n_considered;
    uint32_t tie_winner, tie_loser; /* the last names compared */
    char name[SYMBOL_NAME_BYTES], other_name[SYMBOL_TIE_BYTES];
};

/* An address to name. The caller sets address and id; zero elsewhere. */
struct symbol_wanted {
    uint64_t address;
    uint64_t start; /* of the symbol that covers it, in the file's addresses */
    uint32_t name;  /* where its name is; 0: none covers the address */
    uint32_t id;    /* the caller's */
};

bool symbols_open(struct symbols *symbols, const struct profile_mapping *mapping);
void symbols_close(struct symbols *symbols);
/* `wanted` ascends by address. */
void symbols_find(struct symbols *symbols, struct symbol_wanted *wanted, size_t n_wanted);
/* The next function from *cursor (0: the first) on: its run-time address and its size. False: no
 * more. */
bool symbols_next(struct symbols *symbols, uint64_t *cursor, struct symbol_wanted *ret,
                  uint64_t *ret_bytes);
/* The name of what was found; no bytes if there is none. Valid until the next call. */
struct profile_text symbols_name(struct symbols *symbols, const struct symbol_wanted *wanted);

#endif
