/* SPDX-License-Identifier: MIT */
#include "labels/environment.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

struct span {
    const char *at;
    size_t n_bytes;
};

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static struct span trimmed(const char *at, size_t n_bytes)
{
    while (n_bytes && is_blank(*at))
        at++, n_bytes--;
    while (n_bytes && is_blank(at[n_bytes - 1]))
        n_bytes--;
    return (struct span){at, n_bytes};
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* False: a % without two digits. What does not fit is counted in *ret_bytes, not stored. */
static bool decode(struct span text, char *out, size_t capacity, size_t *ret_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n_bytes; i++, n++) {
        char byte = text.at[i];
        if (byte == '%') {
            int high = i + 2 < text.n_bytes ? hex_digit(text.at[i + 1]) : -1;
            int low = high < 0 ? -1 : hex_digit(text.at[i + 2]);
            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (n < capacity)
            out[n] = byte;
    }
    *ret_bytes = n;
    return true;
}

static bool make_key(struct span text, struct label_text *label)
{
    if (!decode(text, label->key, LABEL_KEY_BYTES, &label->key_bytes) || label->key_bytes < 1 ||
        label->key_bytes > LABEL_KEY_BYTES || memchr(label->key, '\0', label->key_bytes))
        return false;
    label->key[label->key_bytes] = '\0';
    for (char *at = label->key; *at; at++)
        *at = *at == '.' ? '_' : *at;
    return strncmp(label->key, "pprof::", 7) != 0;
}

static bool make_value(struct span text, struct label_text *label)
{
    size_t n_bytes;
    if (!decode(text, label->value, sizeof label->value, &n_bytes))
        return false;
    n_bytes = n_bytes < sizeof label->value ? n_bytes : sizeof label->value;
    label->value_bytes = text_cut_at_character(label->value, n_bytes, LABEL_VALUE_BYTES);
    label->value[label->value_bytes] = '\0';
    return label->value_bytes > 0;
}

/* key = value ; property ; ... */
static bool make_member(const char *at, size_t n_bytes, struct label_text *label)
{
    const char *properties = memchr(at, ';', n_bytes);
    const char *limit = properties ? properties : at + n_bytes;
    const char *equals = memchr(at, '=', (size_t)(limit - at));
    return equals && make_key(trimmed(at, (size_t)(equals - at)), label) &&
           make_value(trimmed(equals + 1, (size_t)(limit - equals - 1)), label);
}

static void add_list(const char *list, environment_add *add, void *context)
{
    struct label_text label;
    while (*list) {
        size_t n_bytes = strcspn(list, ",");
        if (make_member(list, n_bytes, &label))
            add(context, &label);
        list += n_bytes + (list[n_bytes] == ',');
    }
}

/* Plain text: the one variable that is not percent-encoded. */
static void add_service(const char *name, environment_add *add, void *context)
{
    struct label_text label = {.key = "service_name", .key_bytes = 12};
    size_t n_bytes = strnlen(name, LABEL_VALUE_BYTES + 1);
    label.value_bytes = text_cut_at_character(name, n_bytes, LABEL_VALUE_BYTES);
    memcpy(label.value, name, label.value_bytes);
    if (label.value_bytes)
        add(context, &label);
}

static bool is_hex(const char *at, size_t n_bytes)
{
    return strspn(at, "0123456789abcdef") >= n_bytes;
}

/* version - trace id - parent id - flags; a later version may say more. */
static bool is_traceparent(const char *text)
{
    static const char zeros[33] = "00000000000000000000000000000000";
    size_t n_bytes = strlen(text);
    if (n_bytes < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-')
        return false;
    bool is_known = memcmp(text, "00", 2) == 0 ? n_bytes == 55 : n_bytes == 55 || text[55] == '-';
    return is_known && memcmp(text, "ff", 2) != 0 && is_hex(text, 2) && is_hex(text + 3, 32) &&
           is_hex(text + 36, 16) && is_hex(text + 53, 2) && memcmp(text + 3, zeros, 32) != 0 &&
           memcmp(text + 36, zeros, 16) != 0;
}

static void add_trace(const char *text, environment_add *add, void *context)
{
    struct label_text label = {.key = "trace_id", .key_bytes = 8, .value_bytes = 32};
    if (!is_traceparent(text))
        return;
    memcpy(label.value, text + 3, 32);
    add(context, &label);
}

static const char *value_of(char *const *environment, const char *name)
{
    size_t n_bytes = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, n_bytes) == 0 && (*environment)[n_bytes] == '=')
            return *environment + n_bytes + 1;
    return "";
}

void environment_labels(char *const *environment, environment_add *add, void *context)
{
    add_service(value_of(environment, "OTEL_SERVICE_NAME"), add, context);
    add_list(value_of(environment, "OTEL_RESOURCE_ATTRIBUTES"), add, context);
    add_list(value_of(environment, "BAGGAGE"), add, context);
    add_trace(value_of(environment, "TRACEPARENT"), add, context);
}
