/* SPDX-License-Identifier: MIT */
#include "unwind/fde.h"

/* Pointer encodings of the LSB's exception frame format. */
enum {
    PE_OMIT = 0xff,
    PE_SIZE = 0x0f,
    PE_ABSOLUTE = 0x00,
    PE_UDATA4 = 0x03,
    PE_SDATA4 = 0x0b,
    PE_UDATA8 = 0x04,
    PE_SDATA8 = 0x0c,
    PE_RELATION = 0x70,
    PE_PC_RELATIVE = 0x10,
    PE_TABLE_SORTED = 0x3b, /* relative to the table's header, signed, 4 bytes */
};

enum { LENGTH_IS_64_BIT = 0xffffffff };

struct table_row { /* of the binary search table, both relative to the header */
    int32_t code, fde;
};

static unsigned pointer_bytes(uint8_t format)
{
    switch (format & PE_SIZE) {
    case PE_UDATA4:
    case PE_SDATA4:
        return 4;
    case PE_ABSOLUTE:
    case PE_UDATA8:
    case PE_SDATA8:
        return 8;
    default:
        return 0;
    }
}

uintptr_t fde_pointer(struct bytes *bytes, uint8_t format)
{
    uintptr_t place = bytes->at;
    unsigned n = pointer_bytes(format);
    if (!n || ((format & PE_RELATION) && (format & PE_RELATION) != PE_PC_RELATIVE)) {
        bytes->ok = false;
        return 0;
    }
    uintptr_t value = (format & PE_SIZE) == PE_UDATA4 ? bytes_unsigned(bytes, n)
                                                      : (uintptr_t)bytes_signed(bytes, n);
    return (format & PE_RELATION) == PE_PC_RELATIVE ? place + value : value;
}

static struct bytes within(const struct cfi_tables *tables, uintptr_t at)
{
    bool is_inside = at >= tables->low && at < tables->limit;
    return (struct bytes){at, tables->limit, is_inside};
}

/* The last row whose code starts at or before the address; the rows are sorted by code. */
static bool search(uintptr_t header, uintptr_t rows, uint64_t n_rows, uintptr_t address,
                   struct table_row *ret_row)
{
    int64_t want = (int64_t)(address - header);
    uint64_t low = 0, high = n_rows;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        struct table_row row;
        memcpy(&row, (const void *)(rows + middle * sizeof(row)), sizeof(row));
        if (row.code <= want) {
            *ret_row = row;
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low != 0;
}

static enum fde_status look_up(const struct cfi_tables *tables, uintptr_t address,
                               uintptr_t *ret_fde)
{
    struct bytes header = within(tables, tables->header);
    uint64_t version = bytes_unsigned(&header, 1);
    uint8_t eh_frame_format = (uint8_t)bytes_unsigned(&header, 1);
    uint64_t count_format = bytes_unsigned(&header, 1);
    uint64_t table_format = bytes_unsigned(&header, 1);
    bytes_skip(&header, pointer_bytes(eh_frame_format));
    uint64_t n_rows = bytes_unsigned(&header, 4);
    uintptr_t rows = header.at;
    if (!header.ok || version != 1 || eh_frame_format == PE_OMIT || count_format != PE_UDATA4 ||
        table_format != PE_TABLE_SORTED ||
        n_rows > (header.limit - header.at) / sizeof(struct table_row))
        return FDE_UNREADABLE;
    struct table_row row;
    if (!search(tables->header, rows, n_rows, address, &row))
        return FDE_NOT_COVERED;
    *ret_fde = tables->header + (uintptr_t)(intptr_t)row.fde;
    return FDE_FOUND;
}

/* Narrows `entry` to the CIE or FDE that starts there; false for a terminator or 64-bit DWARF. */
static bool open_entry(struct bytes *entry)
{
    uint64_t length = bytes_unsigned(entry, 4);
    if (!entry->ok || length == 0 || length == LENGTH_IS_64_BIT ||
        length > entry->limit - entry->at)
        return false;
    entry->limit = entry->at + length;
    return true;
}

static bool augment(struct bytes *cie, char letter, struct fde *fde)
{
    switch (letter) {
    case 'R':
        fde->pointer_format = (uint8_t)bytes_unsigned(cie, 1);
        return true;
    case 'P': {
        unsigned n = pointer_bytes((uint8_t)bytes_unsigned(cie, 1));
        bytes_skip(cie, n);
        return n != 0;
    }
    case 'L':
        bytes_skip(cie, 1);
        return true;
    case 'S':
        fde->is_signal_frame = true;
        return true;
    default:
        return false;
    }
}

/* The augmentation string is empty or "z" followed by letters; each letter has its data. */
static bool read_augmentations(struct bytes *cie, struct bytes letters, struct fde *fde)
{
    uint64_t n = bytes_uleb(cie);
    struct bytes data = *cie;
    bytes_skip(cie, n);
    if (!cie->ok)
        return false;
    data.limit = cie->at;
    char letter;
    while ((letter = (char)bytes_unsigned(&letters, 1)))
        if (!augment(&data, letter, fde))
            return false;
    return data.ok && letters.ok;
}

static bool read_cie(struct bytes cie, struct fde *fde, bool *ret_has_data)
{
    if (!open_entry(&cie) || bytes_unsigned(&cie, 4) != 0)
        return false;
    uint64_t version = bytes_unsigned(&cie, 1);
    struct bytes letters = cie;
    while (bytes_unsigned(&cie, 1))
        ;
    fde->code_align = bytes_uleb(&cie);
    fde->data_align = bytes_sleb(&cie);
    uint64_t return_register = version == 1 ? bytes_unsigned(&cie, 1) : bytes_uleb(&cie);
    if (!cie.ok || (version != 1 && version != 3) || return_register != 16)
        return false;
    uint64_t first = bytes_unsigned(&letters, 1);
    *ret_has_data = first == 'z';
    if (first && (first != 'z' || !read_augmentations(&cie, letters, fde)))
        return false;
    fde->common = cie;
    return true;
}

static bool read_fde(const struct cfi_tables *tables, uintptr_t at, struct fde *fde)
{
    struct bytes entry = within(tables, at);
    if (!open_entry(&entry))
        return false;
    uintptr_t cie_place = entry.at;
    uint64_t cie_back = bytes_unsigned(&entry, 4);
    bool has_data;
    if (!entry.ok || !cie_back || !read_cie(within(tables, cie_place - cie_back), fde, &has_data))
        return false;
    fde->begin = fde_pointer(&entry, fde->pointer_format);
    fde->limit = fde->begin + fde_pointer(&entry, fde->pointer_format & PE_SIZE);
    if (has_data)
        bytes_skip(&entry, bytes_uleb(&entry));
    fde->own = entry;
    return entry.ok;
}

enum fde_status fde_find(const struct cfi_tables *tables, uintptr_t address, struct fde *ret_fde)
{
    uintptr_t at = 0;
    enum fde_status status = look_up(tables, address, &at);
    if (status != FDE_FOUND)
        return status;
    *ret_fde = (struct fde){.pointer_format = PE_ABSOLUTE};
    if (!read_fde(tables, at, ret_fde))
        return FDE_UNREADABLE;
    bool covers = address >= ret_fde->begin && address < ret_fde->limit;
    return covers ? FDE_FOUND : FDE_NOT_COVERED;
}
