/* SPDX-License-Identifier: MIT */
#include "encoder/symbols.h"

#include <string.h>

/* Far above any real file; a corrupt one must not keep the program waiting. */
enum { MAX_SYMBOLS = 1 << 24, MAX_CONSIDERED = 1 << 24 };

static bool is_same_id(const struct build_id *id, const uint8_t *bytes, size_t n_bytes)
{
    return id->n_bytes == n_bytes && memcmp(id->bytes, bytes, n_bytes) == 0;
}

/* /usr/lib/debug/.build-id/xx/yyyy.debug */
static void debug_path(char *path, const struct build_id *id)
{
    static const char digits[] = "0123456789abcdef", root[] = "/usr/lib/debug/.build-id/";
    memcpy(path, root, sizeof(root) - 1);
    path += sizeof(root) - 1;
    for (size_t i = 0; i < id->n_bytes; i++) {
        *path++ = digits[id->bytes[i] >> 4];
        *path++ = digits[id->bytes[i] & 15];
        if (i == 0)
            *path++ = '/';
    }
    memcpy(path, ".debug", 7);
}

static bool use_debug_file(struct symbols *symbols, const struct build_id *id)
{
    char path[64 + 2 * BUILD_ID_MAX_BYTES];
    struct build_id debug_id;
    if (id->n_bytes < 2)
        return false;
    debug_path(path, id);
    if (!elf_open(&symbols->debug, path))
        return false;
    elf_build_id(&symbols->debug, &debug_id);
    if (is_same_id(id, debug_id.bytes, debug_id.n_bytes) &&
        elf_find_symbols(&symbols->debug, SHT_SYMTAB, &symbols->table)) {
        symbols->file = &symbols->debug;
        return true;
    }
    elf_close(&symbols->debug);
    return false;
}

bool symbols_open(struct symbols *symbols, const struct profile_mapping *mapping)
{
    struct build_id id;
    symbols->debug.file.fd = -1;
    symbols->is_dynamic = false;
    symbols->n_considered = 0;
    symbols->tie_winner = symbols->tie_loser = 0;
    if (!mapping->file || !elf_open(&symbols->own, mapping->file))
        return false;
    symbols->file = &symbols->own;
    elf_build_id(&symbols->own, &id);
    if ((mapping->build_id_bytes == 0 ||
         is_same_id(&id, mapping->build_id, mapping->build_id_bytes)) &&
        elf_address_shift(&symbols->own, mapping->start, mapping->offset, &symbols->shift) &&
        (elf_find_symbols(&symbols->own, SHT_SYMTAB, &symbols->table) ||
         use_debug_file(symbols, &id) ||
         (symbols->is_dynamic = elf_find_symbols(&symbols->own, SHT_DYNSYM, &symbols->table))))
        return true;
    symbols_close(symbols);
    return false;
}

void symbols_close(struct symbols *symbols)
{
    elf_close(&symbols->own);
    elf_close(&symbols->debug);
}

static size_t leading_underscores(const char *name)
{
    return strspn(name, "_");
}

/* Of two names of one start: fewer leading underscores, then the shorter, then the alphabet; so
 * malloc, not __libc_malloc, and puts, not _IO_puts. */
static bool is_better_name(struct symbols *symbols, uint32_t name, uint32_t than)
{
    if (name == symbols->tie_loser && than == symbols->tie_winner)
        return false;
    if (name == symbols->tie_winner && than == symbols->tie_loser)
        return true;
    char *a = symbols->name, *b = symbols->other_name;
    size_t n_a = elf_name(symbols->file, &symbols->table, name, a, SYMBOL_TIE_BYTES);
    size_t n_b = elf_name(symbols->file, &symbols->table, than, b, SYMBOL_TIE_BYTES);
    size_t bars_a = leading_underscores(a), bars_b = leading_underscores(b);
    bool is_better = n_a > 0 && (bars_a != bars_b ? bars_a < bars_b
                                 : n_a != n_b     ? n_a < n_b
                                                  : strcmp(a, b) < 0);
    symbols->tie_winner = is_better ? name : than;
    symbols->tie_loser = is_better ? than : name;
    return is_better;
}

/* A symbol that starts later says more about the address than one around it. */
static bool is_better(struct symbols *symbols, const Elf64_Sym *symbol,
                      const struct symbol_wanted *wanted)
{
    if (wanted->name == 0 || symbol->st_value != wanted->start)
        return wanted->name == 0 || symbol->st_value > wanted->start;
    return symbol->st_name != wanted->name &&
           is_better_name(symbols, symbol->st_name, wanted->name);
}

static bool is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_size > 0 &&
           symbol->st_shndx != SHN_UNDEF && symbol->st_name != 0 &&
           symbol->st_value + symbol->st_size > symbol->st_value;
}

/* The first wanted address that is not below `address`. */
static size_t lower_bound(const struct symbol_wanted *wanted, size_t n_wanted, uint64_t address)
{
    size_t low = 0, high = n_wanted;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wanted[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void offer(struct symbols *symbols, const Elf64_Sym *symbol, struct symbol_wanted *wanted,
                  size_t n_wanted)
{
    uint64_t end = symbol->st_value + symbol->st_size;
    for (size_t i = lower_bound(wanted, n_wanted, symbol->st_value);
         i < n_wanted && wanted[i].address < end; i++) {
        if (++symbols->n_considered > MAX_CONSIDERED)
            return;
        if (is_better(symbols, symbol, &wanted[i])) {
            wanted[i].start = symbol->st_value;
            wanted[i].name = symbol->st_name;
        }
    }
}

void symbols_find(struct symbols *symbols, struct symbol_wanted *wanted, size_t n_wanted)
{
    Elf64_Sym symbol;
    for (size_t i = 0; i < n_wanted; i++)
        wanted[i].address += symbols->shift;
    for (uint64_t i = 0; i < symbols->table.n_symbols && i < MAX_SYMBOLS; i++) {
        if (!elf_symbol(symbols->file, &symbols->table, i, &symbol))
            break;
        if (is_function(&symbol) && symbol.st_value <= wanted[n_wanted - 1].address)
            offer(symbols, &symbol, wanted, n_wanted);
    }
}

bool symbols_next(struct symbols *symbols, uint64_t *cursor, struct symbol_wanted *ret,
                  uint64_t *ret_bytes)
{
    Elf64_Sym symbol;
    for (uint64_t i = *cursor; i < symbols->table.n_symbols && i < MAX_SYMBOLS; i++) {
        if (!elf_symbol(symbols->file, &symbols->table, i, &symbol))
            break;
        if (!is_function(&symbol))
            continue;
        *cursor = i + 1;
        *ret_bytes = symbol.st_size;
        *ret = (struct symbol_wanted){.address = symbol.st_value - symbols->shift,
                                      .start = symbol.st_value,
                                      .name = symbol.st_name};
        return true;
    }
    return false;
}

/* Without the version that .symtab appends to a versioned one ("pthread_create@@GLIBC_2.34") and
 * .dynsym does not: one function has one name, with and without a debug file. */
struct profile_text symbols_name(struct symbols *symbols, const struct symbol_wanted *wanted)
{
    size_t n_bytes = wanted->name ? elf_name(symbols->file, &symbols->table, wanted->name,
                                             symbols->name, SYMBOL_NAME_BYTES)
                                  : 0;
    const char *version = n_bytes ? memchr(symbols->name, '@', n_bytes) : NULL;
    if (version && version > symbols->name)
        n_bytes = (size_t)(version - symbols->name);
    return (struct profile_text){symbols->name, n_bytes};
}
