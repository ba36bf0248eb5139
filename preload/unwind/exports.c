/* SPDX-License-Identifier: MIT */
#include "unwind/exports.h"

#include <elf.h>
#include <string.h>

#include "base/loader.h"

/* The loader adds the load address to the pointers of most objects, in place; not to those of an
 * object whose dynamic section is read-only. */
static uintptr_t pointer_of(const struct link_map *object, const ElfW(Dyn) * entry)
{
    uintptr_t value = entry->d_un.d_ptr;
    return value < object->l_addr ? value + object->l_addr : value;
}

/* DT_GNU_HASH says how many symbols there are only by the end of its last chain. */
static void count_by_gnu_hash(const uint32_t *table, struct exports *exports)
{
    uint32_t n_buckets = table[0], first = table[1], n_bloom_words = table[2];
    const uint32_t *buckets = table + 4 + (size_t)n_bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chains = buckets + n_buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n_buckets; i++)
        last = buckets[i] > last ? buckets[i] : last;
    exports->first = first;
    if (last < first)
        return;
    while (!(chains[last - first] & 1))
        last++;
    exports->n_symbols = last + 1;
}

static void count_by_hash(const uint32_t *table, struct exports *exports)
{
    exports->n_symbols = table[1]; /* as many as chain entries */
}

bool exports_open(uintptr_t address, struct exports *ret_exports)
{
    struct dl_find_object found;
    const uint32_t *hash = NULL, *gnu_hash = NULL;
    *ret_exports = (struct exports){.symbols = NULL};
    if (!loader_find(address, &found) || !found.dlfo_link_map->l_ld)
        return false;
    const struct link_map *object = found.dlfo_link_map;
    ret_exports->bias = object->l_addr;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            ret_exports->symbols = (const void *)pointer_of(object, entry);
        else if (entry->d_tag == DT_STRTAB)
            ret_exports->names = (const void *)pointer_of(object, entry);
        else if (entry->d_tag == DT_STRSZ)
            ret_exports->names_bytes = entry->d_un.d_val;
        else if (entry->d_tag == DT_GNU_HASH)
            gnu_hash = (const void *)pointer_of(object, entry);
        else if (entry->d_tag == DT_HASH)
            hash = (const void *)pointer_of(object, entry);
    }
    if (!ret_exports->symbols || !ret_exports->names)
        return false;
    if (gnu_hash)
        count_by_gnu_hash(gnu_hash, ret_exports);
    else if (hash)
        count_by_hash(hash, ret_exports);
    return ret_exports->n_symbols > 0;
}

static bool is_function(const ElfW(Sym) * symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_size > 0 && symbol->st_name > 0;
}

bool exports_next(const struct exports *exports, uint32_t *cursor, struct exported_function *ret)
{
    uint32_t i = *cursor < exports->first ? exports->first : *cursor;
    for (; i < exports->n_symbols; i++) {
        const ElfW(Sym) *symbol = &exports->symbols[i];
        if (!is_function(symbol) || symbol->st_name >= exports->names_bytes)
            continue;
        const char *name = exports->names + symbol->st_name;
        *ret = (struct exported_function){
            .start = exports->bias + symbol->st_value,
            .limit = exports->bias + symbol->st_value + symbol->st_size,
            .name = name,
            .name_bytes = strnlen(name, exports->names_bytes - symbol->st_name),
        };
        *cursor = i + 1;
        return true;
    }
    *cursor = i;
    return false;
}
