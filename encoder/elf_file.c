/* SPDX-License-Identifier: MIT */
#include "encoder/elf_file.h"

#include <fcntl.h>
#include <string.h>

#include "base/attributes.h"

enum { MAX_NOTES_BYTES = 64 * 1024 };

/* n_bytes at `offset` lie inside the file; the sum can't overflow. */
static bool is_inside(const struct elf_file *elf, uint64_t offset, uint64_t n_bytes)
{
    return offset <= elf->file.n_bytes && n_bytes <= elf->file.n_bytes - offset;
}

static bool refill(struct elf_file *elf, struct elf_window *window, uint64_t offset)
{
    window->start = offset;
    window->n_bytes = 0;
    if (!os_is_ours(&elf->file))
        return false;
    long n = os_read_at(&elf->file, window->bytes, ELF_WINDOW_BYTES, offset);
    window->n_bytes = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* Bytes of the window from `offset` on: at least one, or NULL. */
static const unsigned char *look(struct elf_file *elf, struct elf_window *window, uint64_t offset,
                                 size_t n_wanted, size_t *ret_n)
{
    if (!is_inside(elf, offset, n_wanted)) /* first: what follows relies on small numbers */
        return NULL;
    if ((offset < window->start || offset - window->start + n_wanted > window->n_bytes) &&
        !refill(elf, window, offset))
        return NULL;
    size_t skip = (size_t)(offset - window->start);
    *ret_n = window->n_bytes - skip;
    return *ret_n >= n_wanted ? window->bytes + skip : NULL;
}

/* Copies a structure of at most ELF_WINDOW_BYTES: the file aligns nothing. */
static bool read_at(struct elf_file *elf, uint64_t offset, void *ret, size_t n_bytes)
{
    size_t n;
    const unsigned char *from = look(elf, &elf->window, offset, n_bytes, &n);
    if (from)
        memcpy(ret, from, n_bytes);
    return from != NULL;
}

static bool read_segment(struct elf_file *elf, unsigned i, Elf64_Phdr *ret)
{
    return read_at(elf, elf->head.e_phoff + i * sizeof(*ret), ret, sizeof(*ret));
}

static bool read_section(struct elf_file *elf, uint64_t i, Elf64_Shdr *ret)
{
    return i < elf->n_sections &&
           read_at(elf, elf->head.e_shoff + i * sizeof(*ret), ret, sizeof(*ret));
}

static bool check_head(struct elf_file *elf)
{
    Elf64_Ehdr *head = &elf->head;
    if (!read_at(elf, 0, head, sizeof(*head)) || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (head->e_phentsize != sizeof(Elf64_Phdr) ||
        !is_inside(elf, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr)))
        head->e_phnum = 0;
    elf->n_sections = 0;
    if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shoff == 0)
        return true;
    Elf64_Shdr first;
    elf->n_sections = 1;
    if (!read_section(elf, 0, &first))
        elf->n_sections = 0; /* cut off by strip, or corrupt */
    else                     /* more than 65279 sections are counted in the first one */
        elf->n_sections = head->e_shnum ? head->e_shnum : first.sh_size;
    if (elf->n_sections > elf->file.n_bytes / sizeof(Elf64_Shdr))
        elf->n_sections = 0;
    return true;
}

bool elf_open(struct elf_file *elf, const char *path)
{
    elf->window.n_bytes = elf->text.n_bytes = 0;
    elf->file.fd = -1;
    /* A FIFO by that name must not block us: hence O_NONBLOCK, which regular files ignore. */
    if (path[0] != '/' || os_open(&elf->file, path, O_RDONLY | O_NONBLOCK, 0) != 0)
        return false;
    if (elf->file.is_regular && check_head(elf))
        return true;
    elf_close(elf);
    return false;
}

void elf_close(struct elf_file *elf)
{
    os_close(&elf->file);
}

static uint64_t padded(uint32_t n_bytes)
{
    return ((uint64_t)n_bytes + 3) & ~UINT64_C(3);
}

static bool find_in_notes(struct elf_file *elf, uint64_t offset, uint64_t n_bytes,
                          struct build_id *ret_id)
{
    Elf64_Nhdr note;
    char owner[4];
    if (n_bytes > MAX_NOTES_BYTES || !is_inside(elf, offset, n_bytes))
        return false;
    uint64_t end = offset + n_bytes;
    while (end - offset >= sizeof(note) && read_at(elf, offset, &note, sizeof(note))) {
        uint64_t at = offset + sizeof(note), id_at = at + padded(note.n_namesz);
        uint64_t next = id_at + padded(note.n_descsz);
        if (next > end)
            return false;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            read_at(elf, at, owner, sizeof(owner)) && memcmp(owner, "GNU", 4) == 0 &&
            note.n_descsz > 0 && note.n_descsz <= BUILD_ID_MAX_BYTES &&
            read_at(elf, id_at, ret_id->bytes, note.n_descsz)) {
            ret_id->n_bytes = note.n_descsz;
            return true;
        }
        offset = next;
    }
    return false;
}

/* Segments first: they are all that a file without sections has. In a separate debug file their
 * offsets mean nothing, there the sections tell. */
void elf_build_id(struct elf_file *elf, struct build_id *ret_id)
{
    Elf64_Phdr segment;
    Elf64_Shdr section;
    ret_id->n_bytes = 0;
    for (unsigned i = 0; i < elf->head.e_phnum && read_segment(elf, i, &segment); i++)
        if (segment.p_type == PT_NOTE &&
            find_in_notes(elf, segment.p_offset, segment.p_filesz, ret_id))
            return;
    for (uint64_t i = 0; i < elf->n_sections && read_section(elf, i, &section); i++)
        if (section.sh_type == SHT_NOTE &&
            find_in_notes(elf, section.sh_offset, section.sh_size, ret_id))
            return;
}

bool elf_find_symbols(struct elf_file *elf, uint32_t type, struct elf_symbols *ret_symbols)
{
    Elf64_Shdr section, names;
    for (uint64_t i = 0; i < elf->n_sections && read_section(elf, i, &section); i++) {
        if (section.sh_type != type || section.sh_entsize != sizeof(Elf64_Sym))
            continue;
        if (!is_inside(elf, section.sh_offset, section.sh_size) ||
            !read_section(elf, section.sh_link, &names) || names.sh_type != SHT_STRTAB ||
            !is_inside(elf, names.sh_offset, names.sh_size))
            return false;
        *ret_symbols = (struct elf_symbols){section.sh_offset, section.sh_size / sizeof(Elf64_Sym),
                                            names.sh_offset, names.sh_size};
        return true;
    }
    return false;
}

static uint64_t page_floor(uint64_t address)
{
    return address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* The segment that starts at the mapping's page of the file; if a part of one was mapped (or had
 * its protection changed), the segment that has this page. */
bool elf_address_shift(struct elf_file *elf, uint64_t start, uint64_t offset, uint64_t *ret_shift)
{
    Elf64_Phdr segment;
    bool did_find = false;
    for (unsigned i = 0; i < elf->head.e_phnum && read_segment(elf, i, &segment); i++) {
        uint64_t first = page_floor(segment.p_offset);
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || offset < first ||
            offset - first >= segment.p_filesz + (segment.p_offset - first))
            continue;
        if (did_find && offset != first)
            continue;
        *ret_shift = page_floor(segment.p_vaddr) + (offset - first) - start;
        did_find = true;
        if (offset == first)
            break;
    }
    return did_find;
}

bool elf_symbol(struct elf_file *elf, const struct elf_symbols *symbols, uint64_t index,
                Elf64_Sym *ret_symbol)
{
    return read_at(elf, symbols->offset + index * sizeof(*ret_symbol), ret_symbol,
                   sizeof(*ret_symbol));
}

size_t elf_name(struct elf_file *elf, const struct elf_symbols *symbols, uint32_t name,
                char *buffer, size_t size)
{
    size_t length = 0;
    while (name + length < symbols->names_bytes && length + 1 < size) {
        size_t n;
        const unsigned char *from =
            look(elf, &elf->text, symbols->names_offset + name + length, 1, &n);
        if (!from)
            return 0;
        if (n > symbols->names_bytes - name - length)
            n = (size_t)(symbols->names_bytes - name - length);
        if (n > size - 1 - length)
            n = size - 1 - length;
        const unsigned char *end = memchr(from, 0, n);
        size_t n_new = end ? (size_t)(end - from) : n;
        memcpy(buffer + length, from, n_new);
        length += n_new;
        if (end)
            break;
    }
    buffer[length] = '\0';
    return length;
}
