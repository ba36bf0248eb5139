/* SPDX-License-Identifier: MIT */
#include "labels/loaded.h"

#include <elf.h>
#include <string.h>

enum { CHAIN_MAX = 1 << 20 }; /* symbols looked at; a damaged table may go in circles */

bool loaded_holds(const struct loaded *object, uintptr_t address, size_t n_bytes)
{
    const struct dl_phdr_info *info = object->info;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &info->dlpi_phdr[i];
        uintptr_t offset = address - (info->dlpi_addr + load->p_vaddr);
        if (load->p_type == PT_LOAD && (load->p_flags & PF_R) && offset <= load->p_memsz &&
            n_bytes <= load->p_memsz - offset)
            return true;
    }
    return false;
}

static bool holds_items(const struct loaded *object, const void *first, uint64_t index, size_t size)
{
    return index < ((uint64_t)1 << 32) && loaded_holds(object, (uintptr_t)first + index * size, size);
}

/* The loader writes addresses over the offsets, where the table may be written to. */
static const void *table_at(const struct loaded *object, ElfW(Addr) value)
{
    if (loaded_holds(object, value, 1))
        return (const void *)value;
    uintptr_t moved = object->info->dlpi_addr + value;
    return loaded_holds(object, moved, 1) ? (const void *)moved : NULL;
}

static void note_entry(struct loaded *object, const ElfW(Dyn) *entry)
{
    switch (entry->d_tag) {
    case DT_SYMTAB:
        object->symbols = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_STRTAB:
        object->strings = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_STRSZ:
        object->strings_bytes = entry->d_un.d_val;
        break;
    case DT_GNU_HASH:
        object->gnu_hash = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_HASH:
        object->sysv_hash = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_RELA:
        object->relocations[0] = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_RELASZ:
        object->relocations_bytes[0] = entry->d_un.d_val;
        break;
    case DT_JMPREL:
        object->relocations[1] = table_at(object, entry->d_un.d_ptr);
        break;
    case DT_PLTRELSZ:
        object->relocations_bytes[1] = entry->d_un.d_val;
        break;
    default:
        break;
    }
}

static const ElfW(Phdr) *dynamic_segment(const struct dl_phdr_info *info)
{
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return &info->dlpi_phdr[i];
    return NULL;
}

bool loaded_open(struct loaded *object, const struct dl_phdr_info *info)
{
    *object = (struct loaded){.info = info};
    const ElfW(Phdr) *segment = dynamic_segment(info);
    if (!segment)
        return false;
    const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + segment->p_vaddr);
    for (size_t n = segment->p_memsz / sizeof *entry; n > 0; n--, entry++) {
        if (!loaded_holds(object, (uintptr_t)entry, sizeof *entry) || entry->d_tag == DT_NULL)
            break;
        note_entry(object, entry);
    }
    return object->symbols && object->strings && (object->gnu_hash || object->sysv_hash);
}

static const ElfW(Sym) *match(const struct loaded *object, uint64_t index, const char *name)
{
    size_t n_bytes = strlen(name) + 1;
    if (!holds_items(object, object->symbols, index, sizeof *object->symbols))
        return NULL;
    const ElfW(Sym) *symbol = &object->symbols[index];
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_name > object->strings_bytes ||
        n_bytes > object->strings_bytes - symbol->st_name ||
        !loaded_holds(object, (uintptr_t)object->strings + symbol->st_name, n_bytes))
        return NULL;
    return memcmp(object->strings + symbol->st_name, name, n_bytes) == 0 ? symbol : NULL;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static const ElfW(Sym) *find_by_gnu_hash(const struct loaded *object, const char *name)
{
    const uint32_t *head = object->gnu_hash;
    if (!loaded_holds(object, (uintptr_t)head, 4 * sizeof *head) || head[0] == 0)
        return NULL;
    uint32_t hash = gnu_hash_of(name), first = head[1];
    const uint32_t *buckets = head + 4 + (size_t)head[2] * 2; /* bloom words are of 64 bits */
    const uint32_t *chain = buckets + head[0];
    if (!holds_items(object, buckets, hash % head[0], sizeof *buckets))
        return NULL;
    uint64_t index = buckets[hash % head[0]];
    for (int n = 0; n < CHAIN_MAX && index >= first; n++, index++) {
        if (!holds_items(object, chain, index - first, sizeof *chain))
            return NULL;
        uint32_t entry = chain[index - first];
        const ElfW(Sym) *symbol = (entry ^ hash) >> 1 == 0 ? match(object, index, name) : NULL;
        if (symbol || (entry & 1))
            return symbol;
    }
    return NULL;
}

static uint32_t sysv_hash_of(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (unsigned char)*name;
        hash = (hash ^ (hash & 0xF0000000) >> 24) & 0x0FFFFFFF;
    }
    return hash;
}

static const ElfW(Sym) *find_by_sysv_hash(const struct loaded *object, const char *name)
{
    const uint32_t *head = object->sysv_hash;
    if (!loaded_holds(object, (uintptr_t)head, 2 * sizeof *head) || head[0] == 0)
        return NULL;
    const uint32_t *buckets = head + 2, *chain = buckets + head[0];
    if (!holds_items(object, buckets, sysv_hash_of(name) % head[0], sizeof *buckets))
        return NULL;
    uint32_t index = buckets[sysv_hash_of(name) % head[0]];
    for (int n = 0; n < CHAIN_MAX && index; n++, index = chain[index]) {
        const ElfW(Sym) *symbol = match(object, index, name);
        if (symbol || !holds_items(object, chain, index, sizeof *chain))
            return symbol;
    }
    return NULL;
}

const ElfW(Sym) *loaded_find(const struct loaded *object, const char *name)
{
    return object->gnu_hash ? find_by_gnu_hash(object, name) : find_by_sysv_hash(object, name);
}

/* Code of the object itself may name the symbol by its offset alone, without the symbol. */
static bool is_of(const struct loaded *object, const ElfW(Rela) *entry, const ElfW(Sym) *symbol)
{
    uint64_t index = ELF64_R_SYM(entry->r_info);
    if (index == 0)
        return (uint64_t)entry->r_addend == symbol->st_value;
    return &object->symbols[index] == symbol && entry->r_addend == 0;
}

static uintptr_t word_of(const struct loaded *object, const ElfW(Rela) *entry)
{
    uintptr_t word = object->info->dlpi_addr + entry->r_offset;
    word += ELF64_R_TYPE(entry->r_info) == R_X86_64_TLSDESC ? sizeof word : 0;
    return loaded_holds(object, word, sizeof word) ? word : 0;
}

uintptr_t loaded_tls_word(const struct loaded *object, const ElfW(Sym) *symbol)
{
    for (int table = 0; table < 2; table++) {
        const ElfW(Rela) *entry = object->relocations[table];
        size_t n_bytes = object->relocations_bytes[table];
        if (!entry || !loaded_holds(object, (uintptr_t)entry, n_bytes))
            continue;
        for (size_t n = n_bytes / sizeof *entry; n > 0; n--, entry++) {
            uint64_t type = ELF64_R_TYPE(entry->r_info);
            if ((type == R_X86_64_TLSDESC || type == R_X86_64_TPOFF64) &&
                is_of(object, entry, symbol))
                return word_of(object, entry);
        }
    }
    return 0;
}
