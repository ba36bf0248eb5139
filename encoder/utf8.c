/* SPDX-License-Identifier: MIT */
#include "encoder/utf8.h"

#include <stdint.h>
#include <string.h>

/* Length of the character at `at` by its lead byte, and the bounds of its second byte, which keep
 * out overlong forms, surrogates and what lies beyond U+10FFFF. 0: no character starts so. */
static size_t lead(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    *high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

static size_t character_bytes(const unsigned char *at, size_t n_left)
{
    unsigned char low, high;
    if (at[0] < 0x80)
        return at[0] != 0;
    size_t n = lead(at[0], &low, &high);
    if (n == 0 || n > n_left || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

size_t utf8_valid_prefix(const char *bytes, size_t n_bytes)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t i = 0;
    while (i < n_bytes) {
        size_t n = character_bytes(at + i, n_bytes - i);
        if (n == 0)
            break;
        i += n;
    }
    return i;
}

size_t utf8_clean(char *to, const char *bytes, size_t n_bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *start = to;
    while (n_bytes > 0) {
        size_t n = utf8_valid_prefix(bytes, n_bytes);
        memcpy(to, bytes, n);
        to += n;
        if (n < n_bytes) {
            unsigned char bad = (unsigned char)bytes[n++];
            memcpy(to, (char[]){'\\', 'x', digits[bad >> 4], digits[bad & 15]}, 4);
            to += 4;
        }
        bytes += n;
        n_bytes -= n;
    }
    return (size_t)(to - start);
}
