/* SPDX-License-Identifier: MIT
 * Symbols of a loaded ELF object, looked up in its own tables, so that objects loaded RTLD_LOCAL and
 * executables that export a symbol answer too.
 *
 * Place: under sources.c, inside a dl_iterate_phdr callback, while which the object stays loaded.
 * Every table entry is checked to lie in the object's own segments. Allocation: none.
 * Failure: false, "not there".
 */
#ifndef LABELPROF_LABELS_LOADED_H
#define LABELPROF_LABELS_LOADED_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loaded {
    const struct dl_phdr_info *info;
    const ElfW(Sym) *symbols;
    const char *strings;
    size_t strings_bytes;
    const uint32_t *gnu_hash, *sysv_hash; /* NULL: the object has none */
    const ElfW(Rela) *relocations[2];     /* of data; of procedure linkage */
    size_t relocations_bytes[2];
};

/* False: it has no dynamic symbols. */
bool loaded_open(struct loaded *ret, const struct dl_phdr_info *info);

/* The symbol it defines under that name. */
const ElfW(Sym) *loaded_find(const struct loaded *object, const char *name);

/* Where the loader notes the symbol's offset from the thread pointer, for code of this object that
 * reaches it without a call: the word of a TPOFF64 relocation, or the second word of a TLSDESC
 * descriptor, which holds the (negative) offset if the symbol has static room, else a pointer. 0:
 * no such relocation. */
uintptr_t loaded_tls_word(const struct loaded *object, const ElfW(Sym) *symbol);

/* A range of addresses lies in the object's memory. */
bool loaded_holds(const struct loaded *object, uintptr_t address, size_t n_bytes);

#endif
