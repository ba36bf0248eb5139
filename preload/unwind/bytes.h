/* SPDX-License-Identifier: MIT
 * A reader of DWARF's number formats that can't leave its bounds: past the end every read gives 0
 * and `ok` turns false for good, so the caller checks once, at the end.
 * Pure: safe anywhere.
 */
#ifndef LABELPROF_UNWIND_BYTES_H
#define LABELPROF_UNWIND_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    uintptr_t at, limit;
    bool ok;
};

static inline bool bytes_left(const struct bytes *bytes)
{
    return bytes->ok && bytes->at < bytes->limit;
}

static inline void bytes_skip(struct bytes *bytes, uint64_t n)
{
    if (bytes->ok && n <= bytes->limit - bytes->at)
        bytes->at += n;
    else
        bytes->ok = false;
}

static inline uint64_t bytes_unsigned(struct bytes *bytes, unsigned n)
{
    uint64_t value = 0;
    uintptr_t from = bytes->at;
    bytes_skip(bytes, n);
    if (bytes->ok)
        memcpy(&value, (const void *)from, n); /* x86-64 is little-endian, as its ELF files are */
    return value;
}

static inline int64_t bytes_signed(struct bytes *bytes, unsigned n)
{
    unsigned unused_bits = 64 - 8 * n;
    return (int64_t)(bytes_unsigned(bytes, n) << unused_bits) >> unused_bits;
}

/* LEB128 of either sign; bits beyond 64 are dropped. */
static inline uint64_t bytes_leb(struct bytes *bytes, bool is_signed)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = (uint8_t)bytes_unsigned(bytes, 1);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && shift < 64 && (byte & 0x40))
        value |= ~UINT64_C(0) << shift;
    return value;
}

static inline uint64_t bytes_uleb(struct bytes *bytes)
{
    return bytes_leb(bytes, false);
}

static inline int64_t bytes_sleb(struct bytes *bytes)
{
    return (int64_t)bytes_leb(bytes, true);
}

#endif
