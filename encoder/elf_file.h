/* SPDX-License-Identifier: MIT
 * An ELF64 file, read with distrust: build id, load segments, symbol sections.
 *
 * Read in small pieces through windows rather than mapped: a file that is cut short or rewritten
 * while we look gives fewer names, where a mapping would give the program SIGBUS. Every offset and
 * size is checked against the file before use; each refill checks that the fd is still ours.
 * Memory: the caller's struct. Threads: one at a time. Failure: false, and the caller goes without.
 */
#ifndef LABELPROF_ENCODER_ELF_FILE_H
#define LABELPROF_ENCODER_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/os.h"

enum { ELF_WINDOW_BYTES = 16 * 1024, BUILD_ID_MAX_BYTES = 64 };

struct elf_window {
    uint64_t start;
    size_t n_bytes; /* 0: empty */
    unsigned char bytes[ELF_WINDOW_BYTES];
};

struct elf_file {
    struct os_file file;
    Elf64_Ehdr head;
    uint64_t n_sections;
    struct elf_window window; /* for tables that are walked in order */
    struct elf_window text;   /* for names */
};

struct build_id {
    size_t n_bytes; /* 0: none */
    uint8_t bytes[BUILD_ID_MAX_BYTES];
};

struct elf_symbols {
    uint64_t offset, n_symbols;
    uint64_t names_offset, names_bytes;
};

bool elf_open(struct elf_file *elf, const char *path); /* absolute path of a regular file */
void elf_close(struct elf_file *elf);

void elf_build_id(struct elf_file *elf, struct build_id *ret_id);
/* The section of that type (SHT_SYMTAB, SHT_DYNSYM), with its names. */
bool elf_find_symbols(struct elf_file *elf, uint32_t type, struct elf_symbols *ret_symbols);
/* What to add (modulo 2^64) to run-time addresses in the executable mapping at `start`, `offset`
 * to get the addresses of the symbol table. */
bool elf_address_shift(struct elf_file *elf, uint64_t start, uint64_t offset, uint64_t *ret_shift);

bool elf_symbol(struct elf_file *elf, const struct elf_symbols *symbols, uint64_t index,
                Elf64_Sym *ret_symbol);
/* Copies the name at `name` up to `size` - 1 bytes and a NUL; returns its length, 0 if unusable. */
size_t elf_name(struct elf_file *elf, const struct elf_symbols *symbols, uint32_t name,
                char *buffer, size_t size);

#endif
