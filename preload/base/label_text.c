/* SPDX-License-Identifier: MIT */
#include "base/label_text.h"

#include <string.h>

#include "base/text.h"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One percent-encoded part up to any of `stops`; what does not fit in `capacity` is counted but
 * not stored. */
static bool decode_part(const char **cursor, const char *stops, char *out, size_t capacity,
                        size_t *ret_bytes)
{
    size_t n_bytes = 0;
    const char *at = *cursor;
    for (; *at && !strchr(stops, *at); at++) {
        char byte = *at;
        if (byte == '%') {
            int high = hex_digit(at[1]);
            int low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            at += 2;
        }
        if (n_bytes < capacity)
            out[n_bytes] = byte;
        n_bytes++;
    }
    *cursor = at;
    *ret_bytes = n_bytes;
    return true;
}

bool label_text_next(const char **cursor, struct label_text *label, bool *is_bad)
{
    *is_bad = false;
    if (!**cursor)
        return false;
    *is_bad = true;
    size_t key_bytes, value_bytes;
    if (!decode_part(cursor, "=,", label->key, LABEL_KEY_BYTES, &key_bytes) || **cursor != '=')
        return false;
    ++*cursor;
    if (!decode_part(cursor, ",", label->value, sizeof label->value, &value_bytes))
        return false;
    if (key_bytes < 1 || key_bytes > LABEL_KEY_BYTES || memchr(label->key, '\0', key_bytes))
        return false;
    label->key[key_bytes] = '\0';
    if (strncmp(label->key, "pprof::", 7) == 0)
        return false;
    if (**cursor == ',')
        ++*cursor;
    label->key_bytes = key_bytes;
    if (value_bytes > sizeof label->value)
        value_bytes = sizeof label->value;
    label->value_bytes = text_cut_at_character(label->value, value_bytes, LABEL_VALUE_BYTES);
    label->value[label->value_bytes] = '\0';
    *is_bad = false;
    return true;
}
