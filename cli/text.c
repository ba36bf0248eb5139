/* SPDX-License-Identifier: MIT
 * Strings of a profile made safe for where they go, see text.h.
 */
#include "cli/text.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of the sequence a leading byte announces; 0 if it can't lead one. */
static int sequence_bytes(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead < 0xe0)
        return 2;
    if (lead >= 0xe0 && lead < 0xf0)
        return 3;
    return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/* Overlong forms, surrogates and what lies beyond U+10FFFF are not UTF-8. */
static bool is_shortest(int32_t character, int n_bytes)
{
    static const int32_t first[] = {0, 0, 0x80, 0x800, 0x10000};
    return character >= first[n_bytes] && character <= 0x10ffff &&
           !(character >= 0xd800 && character < 0xe000);
}

int32_t text_next(const char **text)
{
    const unsigned char *bytes = (const unsigned char *)*text;
    int n_bytes = sequence_bytes(bytes[0]);
    *text += 1;
    if (n_bytes <= 1)
        return n_bytes == 1 ? bytes[0] : -1;
    int32_t character = bytes[0] & (0x7f >> n_bytes);
    for (int i = 1; i < n_bytes; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return -1;
        character = character << 6 | (bytes[i] & 0x3f);
    }
    if (!is_shortest(character, n_bytes))
        return -1;
    *text += n_bytes - 1;
    return character;
}

struct range {
    int32_t first, last;
};

/* The blocks that matter for names; a stray character elsewhere only costs a column. */
static const struct range zero_columns[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x200b, 0x200f}, {0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
static const struct range two_columns[] = {
    {0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},
    {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
};

static bool is_in(int32_t character, const struct range *ranges, size_t n_ranges)
{
    for (size_t i = 0; i < n_ranges; i++)
        if (character >= ranges[i].first && character <= ranges[i].last)
            return true;
    return false;
}

int text_columns(int32_t character)
{
    if (is_in(character, zero_columns, sizeof zero_columns / sizeof *zero_columns))
        return 0;
    return is_in(character, two_columns, sizeof two_columns / sizeof *two_columns) ? 2 : 1;
}

/* C0, DEL, C1, line separators, and the marks that reorder a line of text. */
static bool is_control(int32_t character)
{
    return character < 0x20 || (character >= 0x7f && character < 0xa0) ||
           (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2066 && character <= 0x2069);
}

/* Columns of the next character as text_print shows it; moves on past it. */
static int shown_columns(const char **text)
{
    const char *start = *text;
    int32_t character = text_next(text);
    return is_control(character) ? 4 * (int)(*text - start) : text_columns(character);
}

static void print_escaped(FILE *out, const char *from, const char *to)
{
    for (; from < to; from++)
        fprintf(out, "\\x%02x", (unsigned char)*from);
}

static void print_character(FILE *out, const char **text)
{
    const char *start = *text;
    int32_t character = text_next(text);
    if (is_control(character))
        print_escaped(out, start, *text);
    else
        fwrite(start, 1, (size_t)(*text - start), out);
}

/* Where a text cut to max_columns ends, and whether it must be cut. */
static bool must_cut(const char *text, int max_columns, const char **ret_end)
{
    int columns = 0;
    const char *end = text;
    while (*text) {
        columns += shown_columns(&text);
        if (columns <= max_columns - 3)
            end = text;
    }
    *ret_end = end;
    return columns > max_columns;
}

void text_print(FILE *out, const char *text, int max_columns)
{
    const char *end;
    bool is_cut = must_cut(text, max_columns, &end);
    while (is_cut ? text < end : *text != '\0')
        print_character(out, &text);
    if (is_cut)
        fputs("...", out);
}

/* The next character as it is, or \xNN, with that backslash doubled for JSON. */
static void print_utf8(FILE *out, const char **text, const char *backslash)
{
    const char *start = *text;
    if (text_next(text) < 0)
        fprintf(out, "%sx%02x", backslash, (unsigned char)*start);
    else
        fwrite(start, 1, (size_t)(*text - start), out);
}

void text_print_csv(FILE *out, const char *text)
{
    bool is_quoted =
        strpbrk(text, ",\"\r\n") || text[0] == ' ' || (text[0] && text[strlen(text) - 1] == ' ');
    if (is_quoted)
        fputc('"', out);
    while (*text) {
        if (*text == '"')
            fputc('"', out);
        print_utf8(out, &text, "\\");
    }
    if (is_quoted)
        fputc('"', out);
}

static void print_json_character(FILE *out, const char **text)
{
    unsigned char byte = (unsigned char)**text;
    if (byte == '"' || byte == '\\')
        fprintf(out, "\\%c", byte);
    else if (byte < 0x20 || byte == 0x7f)
        fprintf(out, "\\u%04x", byte);
    else {
        print_utf8(out, text, "\\\\");
        return;
    }
    ++*text;
}

void text_print_json(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text)
        print_json_character(out, &text);
    fputc('"', out);
}
