/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <string.h>

struct line line_in(char *buffer, size_t capacity)
{
    buffer[0] = '\0';
    return (struct line){buffer, 0, capacity, false};
}

void line_add_bytes(struct line *line, const char *bytes, size_t n_bytes)
{
    size_t room = line->capacity - 1 - line->n_bytes;
    if (n_bytes > room) {
        n_bytes = room;
        line->is_cut = true;
    }
    memcpy(line->bytes + line->n_bytes, bytes, n_bytes);
    line->n_bytes += n_bytes;
    line->bytes[line->n_bytes] = '\0';
}

void line_add(struct line *line, const char *text)
{
    line_add_bytes(line, text, strlen(text));
}

static void add_in_base(struct line *line, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    line_add_bytes(line, digits + at, sizeof digits - at);
}

void line_add_number(struct line *line, uint64_t number)
{
    add_in_base(line, number, 10);
}

void line_add_hex(struct line *line, uint64_t number)
{
    add_in_base(line, number, 16);
}

bool text_to_number(const char *text, size_t n_bytes, uint64_t *ret)
{
    uint64_t number = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return false;
    }
    *ret = number;
    return n_bytes > 0;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xC0) == 0x80;
}

size_t text_cut_at_character(const char *bytes, size_t n_bytes, size_t max)
{
    if (n_bytes <= max)
        return n_bytes;
    size_t cut = max;
    while (cut > 0 && max - cut < 4 && is_continuation(bytes[cut]))
        cut--;
    return is_continuation(bytes[cut]) ? max : cut; /* no UTF-8 at all: any place is as good */
}

bool text_list_has(const char *list, const char *item, size_t n_bytes)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n == n_bytes && memcmp(list, item, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

void text_hide_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7F)
            *text = '?';
}

uint64_t hash_bytes(const void *bytes, size_t n_bytes)
{
    const unsigned char *at = bytes;
    uint64_t hash = n_bytes * UINT64_C(0x9E3779B97F4A7C15);
    for (; n_bytes >= 8; n_bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0xFF51AFD7ED558CCD);
        hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, at, n_bytes);
    hash = (hash ^ rest) * UINT64_C(0xC4CEB9FE1A85EC53);
    return hash ^ hash >> 29;
}
