/* SPDX-License-Identifier: MIT */
#include "unwind/elf.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/attributes.h"
#include "base/loader.h"
#include "base/sys.h"
#include "unwind/modules.h"

struct headers {
    const ElfW(Phdr) * first;
    unsigned n;
    uintptr_t bias;         /* address = bias + p_vaddr */
    uintptr_t start, limit; /* of the whole object */
};

enum { PROGRAM_HEADERS_MAX = 256 };

static uintptr_t page_down(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE_BYTES - 1);
}

static const ElfW(Phdr) * first_of_type(const struct headers *headers, uint32_t type)
{
    for (unsigned i = 0; i < headers->n; i++)
        if (headers->first[i].p_type == type)
            return &headers->first[i];
    return NULL;
}

/* The loader maps the lowest PT_LOAD at `start`. That it also explains where the table itself lies
 * (file offset e_phoff) tells a table from other bytes. */
static bool accept(struct headers *headers, uintptr_t table, const ElfW(Ehdr) * elf)
{
    headers->first = (const void *)table;
    const ElfW(Phdr) *load = first_of_type(headers, PT_LOAD);
    if (!load)
        return false;
    headers->bias = headers->start - page_down(load->p_vaddr);
    for (unsigned i = 0; i < headers->n; i++) {
        load = &headers->first[i];
        if (load->p_type == PT_LOAD && elf->e_phoff - load->p_offset < load->p_filesz)
            return headers->bias + load->p_vaddr + (elf->e_phoff - load->p_offset) == table;
    }
    return false;
}

/* patchelf moves the table to a segment at the object's end, whose file offset isn't its place in
 * memory: try that offset within each page, from the end. */
static COLD bool find_moved_table(struct headers *headers, const ElfW(Ehdr) * elf)
{
    uintptr_t bytes = headers->n * sizeof(ElfW(Phdr));
    uintptr_t table = page_down(headers->limit - 1) + elf->e_phoff % PAGE_BYTES;
    for (int n_pages = 0; n_pages < 1024 && table > headers->start; n_pages++, table -= PAGE_BYTES)
        if (table + bytes <= headers->limit && sys_can_read(table) &&
            sys_can_read(table + bytes - 8) && accept(headers, table, elf))
            return true;
    return false;
}

static bool read_headers(uintptr_t start, uintptr_t limit, struct headers *ret_headers)
{
    const ElfW(Ehdr) *elf = (const void *)start;
    if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(ElfW(Phdr)) ||
        elf->e_phnum == 0 || elf->e_phnum > PROGRAM_HEADERS_MAX ||
        elf->e_phoff % sizeof(uint64_t) != 0)
        return false;
    *ret_headers = (struct headers){.n = elf->e_phnum, .start = start, .limit = limit};
    if (elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) <= PAGE_BYTES)
        return accept(ret_headers, start + elf->e_phoff, elf);
    return find_moved_table(ret_headers, elf);
}

static const ElfW(Phdr) * load_covering(const struct headers *headers, uintptr_t address)
{
    for (unsigned i = 0; i < headers->n; i++) {
        const ElfW(Phdr) *load = &headers->first[i];
        if (load->p_type == PT_LOAD && address - headers->bias - load->p_vaddr < load->p_memsz)
            return load;
    }
    return NULL;
}

/* One note after another, each padded to 4 bytes. */
static void find_build_id_in(uintptr_t at, uintptr_t limit, struct elf_segment *segment)
{
    while (limit - at >= sizeof(ElfW(Nhdr)) && at < limit) {
        const ElfW(Nhdr) *note = (const void *)at;
        uintptr_t name = at + sizeof(*note);
        uintptr_t content = name + round_up(note->n_namesz, 4);
        if (content < name || content > limit || note->n_descsz > limit - content)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz &&
            memcmp((const void *)name, "GNU", 4) == 0) {
            segment->build_id = (const void *)content;
            segment->build_id_bytes =
                note->n_descsz < BUILD_ID_MAX_BYTES ? note->n_descsz : BUILD_ID_MAX_BYTES;
            return;
        }
        at = content + round_up(note->n_descsz, 4);
    }
}

static void find_build_id(const struct headers *headers, struct elf_segment *segment)
{
    for (unsigned i = 0; i < headers->n && !segment->build_id; i++) {
        const ElfW(Phdr) *notes = &headers->first[i];
        uintptr_t at = headers->bias + notes->p_vaddr;
        if (notes->p_type == PT_NOTE && at % 4 == 0 && load_covering(headers, at))
            find_build_id_in(at, at + notes->p_filesz, segment);
    }
}

static void find_tables(const struct headers *headers, struct cfi_tables *tables)
{
    const ElfW(Phdr) *part = first_of_type(headers, PT_GNU_EH_FRAME);
    const ElfW(Phdr) *load = part ? load_covering(headers, headers->bias + part->p_vaddr) : NULL;
    if (!load || !(load->p_flags & PF_R))
        return;
    tables->header = headers->bias + part->p_vaddr;
    tables->low = headers->bias + load->p_vaddr;
    tables->limit = tables->low + load->p_filesz;
}

static bool is_header(uintptr_t at)
{
    return memcmp((const void *)at, ELFMAG, SELFMAG) == 0;
}

/* Where the object's ELF header is mapped. For an object with holes between its segments glibc
 * names the one segment that was asked for: then the kernel knows for the main program, and a
 * library is linked to begin at 0. */
static uintptr_t object_start(const struct dl_find_object *found)
{
    uintptr_t start = (uintptr_t)found->dlfo_map_start;
    if (is_header(start))
        return start;
    bool is_main = found->dlfo_link_map->l_name[0] == '\0';
    start = is_main ? page_down(getauxval(AT_PHDR)) : found->dlfo_link_map->l_addr;
    return sys_can_read(start) && is_header(start) ? start : 0;
}

bool elf_find(uintptr_t address, struct elf_segment *ret_segment)
{
    struct dl_find_object found;
    struct headers headers;
    if (!loader_find(address, &found))
        return false;
    uintptr_t start_of_object = object_start(&found);
    if (!start_of_object || !read_headers(start_of_object, (uintptr_t)found.dlfo_map_end, &headers))
        return false;
    const ElfW(Phdr) *load = load_covering(&headers, address);
    if (!load || !(load->p_flags & PF_X))
        return false;
    uintptr_t start = headers.bias + load->p_vaddr;
    *ret_segment = (struct elf_segment){
        .start = page_down(start),
        .limit = round_up(start + load->p_memsz, PAGE_BYTES),
        .file_offset = page_down(load->p_offset),
        .object = found.dlfo_link_map,
    };
    find_build_id(&headers, ret_segment);
    find_tables(&headers, &ret_segment->tables);
    return true;
}

uintptr_t elf_main_code(void)
{
    const ElfW(Phdr) *table = (const void *)getauxval(AT_PHDR);
    struct headers headers = {.first = table, .n = (unsigned)getauxval(AT_PHNUM)};
    struct dl_find_object found;
    if (!table || !loader_find((uintptr_t)table, &found))
        return 0;
    headers.bias = found.dlfo_link_map->l_addr;
    for (unsigned i = 0; i < headers.n; i++)
        if (table[i].p_type == PT_LOAD && (table[i].p_flags & PF_X))
            return headers.bias + table[i].p_vaddr;
    return 0;
}
