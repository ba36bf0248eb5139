/* SPDX-License-Identifier: MIT */
#include "unwind/call.h"

#include "base/sys.h"

enum { CALL_MAX_BYTES = 8 };

/* Not by memcpy: under a sanitizer it would object to memory that isn't the program's. */
static __attribute__((no_sanitize("address", "thread"))) void copy(uint8_t *to, uintptr_t from)
{
    for (int i = 0; i < CALL_MAX_BYTES; i++)
        to[i] = ((const volatile uint8_t *)from)[i];
}

/* x86-64: `call rel32` is E8 and four bytes; `call r/m64` is FF, a byte whose middle bits are 2,
 * and up to five more for the operand. */
bool call_ends_at(uintptr_t address)
{
    static const uint8_t indirect_bytes[] = {2, 3, 4, 6, 7};
    uint8_t code[CALL_MAX_BYTES];
    uintptr_t start = address - CALL_MAX_BYTES;
    if (start > address || start >> 47 || !sys_can_read(start))
        return false;
    copy(code, start);
    if (code[CALL_MAX_BYTES - 5] == 0xe8)
        return true;
    for (unsigned i = 0; i < sizeof(indirect_bytes); i++) {
        const uint8_t *call = code + CALL_MAX_BYTES - indirect_bytes[i];
        if (call[0] == 0xff && (call[1] >> 3 & 7) == 2)
            return true;
    }
    return false;
}
