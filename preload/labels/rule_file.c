/* SPDX-License-Identifier: MIT */
#include "labels/rule_file.h"

#include <string.h>

#include "base/attributes.h"

struct parser {
    struct label_rules *rules;
    struct rule_error *error;
    char *line;     /* its first byte */
    char *at, *end; /* the rest of the line */
    uint32_t n_line;
};

struct word {
    char *at; /* ends in NUL */
    size_t n_bytes;
};

static bool fail(struct parser *parser, const char *at, const char *what)
{
    *parser->error = (struct rule_error){
        .line = parser->n_line, .column = (uint32_t)(at - parser->line) + 1, .what = what};
    return false;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* False at the end of the line, which a comment is too. */
static bool next_word(struct parser *parser, struct word *ret)
{
    char *at = parser->at, *end = parser->end;
    while (at < end && is_blank(*at))
        at++;
    parser->at = at;
    if (at == end || *at == '#')
        return false;
    while (parser->at < end && !is_blank(*parser->at))
        parser->at++;
    *ret = (struct word){at, (size_t)(parser->at - at)};
    if (parser->at < end)
        parser->at++;
    at[ret->n_bytes] = '\0'; /* over the blank or the newline that ended it */
    return true;
}

static bool is_word(const struct word *word, const char *text)
{
    return strcmp(word->at, text) == 0;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* What label_text_next would refuse or cut, with its place. */
static bool check_label(struct parser *parser, const struct word *word)
{
    const char *equals = strchr(word->at, '='), *comma = strchr(word->at, ',');
    if (!equals)
        return fail(parser, word->at, "this is not a label, key=value");
    if (equals == word->at)
        return fail(parser, word->at, "the key is missing before =");
    if (!equals[1])
        return fail(parser, equals + 1, "the value is missing after =");
    if (comma)
        return fail(parser, comma, "a rule gives one label, and a comma in it is written %2C");
    size_t n_value = 0;
    for (const char *at = word->at; *at; at++) {
        if (*at == '%' && !(is_hex(at[1]) && is_hex(at[2])))
            return fail(parser, at, "% is not followed by two hexadecimal digits (% itself: %25)");
        at += *at == '%' ? 2 : 0;
        n_value += at > equals;
    }
    if (n_value > LABEL_VALUE_BYTES)
        return fail(parser, equals + 1, "the value has more than 256 bytes");
    return true;
}

static bool find_key(struct parser *parser, const struct word *word, const struct label_text *label,
                     uint16_t *ret_key)
{
    struct label_rules *rules = parser->rules;
    for (uint16_t i = 0; i < rules->n_keys; i++) {
        const struct rule_key *key = &rules->keys[i];
        if (key->n_bytes == label->key_bytes &&
            memcmp(rules->text + key->at, label->key, key->n_bytes) == 0) {
            *ret_key = i;
            return true;
        }
    }
    if (rules->n_keys == RULE_KEYS_MAX)
        return fail(parser, word->at, "the rules have more than 32 keys");
    memcpy(word->at, label->key, label->key_bytes); /* decoded, so not longer than it was */
    *ret_key = (uint16_t)rules->n_keys;
    rules->keys[rules->n_keys++] = (struct rule_key){.at = (uint32_t)(word->at - rules->text),
                                                     .n_bytes = (uint32_t)label->key_bytes,
                                                     .is_wanted = true};
    return true;
}

static bool read_label(struct parser *parser, const struct word *word, struct label_rule *rule)
{
    struct label_text label;
    const char *cursor = word->at;
    char *value = strchr(word->at, '=') + 1;
    bool is_bad;
    if (!label_text_next(&cursor, &label, &is_bad))
        return fail(parser, word->at, "the key has more than 64 bytes, or starts with pprof::");
    rule->line = parser->n_line;
    rule->column = (uint32_t)(word->at - parser->line) + 1;
    memcpy(value, label.value, label.value_bytes);
    rule->value = (uint32_t)(value - parser->rules->text);
    rule->value_bytes = (uint16_t)label.value_bytes;
    return find_key(parser, word, &label, &rule->key);
}

static bool add_pattern(struct parser *parser, const struct word *word, struct rule_patterns *to)
{
    struct label_rules *rules = parser->rules;
    if (rules->n_patterns == RULE_PATTERNS_MAX)
        return fail(parser, word->at, "the file has more than 4096 patterns");
    rules->patterns[rules->n_patterns++] = (uint32_t)(word->at - rules->text);
    to->n++;
    return true;
}

/* The rule's patterns for this word. NULL: it is no such word. */
static struct rule_patterns *patterns_of(struct label_rule *rule, const struct word *word)
{
    if (is_word(word, "function"))
        return &rule->functions;
    return is_word(word, "module") ? &rule->modules : NULL;
}

static bool read_patterns(struct parser *parser, struct label_rule *rule)
{
    struct rule_patterns *to = NULL;
    struct word word = {.at = NULL};
    while (next_word(parser, &word)) {
        struct rule_patterns *begun = patterns_of(rule, &word);
        if (begun && to && !to->n)
            return fail(parser, word.at, "a pattern is missing before this word");
        if (begun && begun->n)
            return fail(parser, word.at, "this word stands twice in one rule");
        if (!begun && !to)
            return fail(parser, word.at, "a label is followed by 'function' or 'module'");
        if (!begun && to == &rule->modules && strchr(word.at, '/'))
            return fail(parser, strchr(word.at, '/'),
                        "a module goes by the base name of its file, without /");
        if (begun)
            begun->first = (uint16_t)parser->rules->n_patterns, to = begun;
        else if (!add_pattern(parser, &word, to))
            return false;
    }
    if (!to)
        return fail(parser, parser->at, "a label is followed by 'function' or 'module'");
    return to->n || fail(parser, parser->at, "a pattern is missing here");
}

/* Control characters have no business in a name, and NUL would end it early. */
static bool check_bytes(struct parser *parser)
{
    for (char *at = parser->at; at < parser->end; at++) {
        if (at - parser->line == RULE_LINE_BYTES_MAX)
            return fail(parser, at, "the line has more than 1024 bytes");
        if (((unsigned char)*at < ' ' && *at != '\t' && !(*at == '\r' && at + 1 == parser->end)) ||
            *at == 0x7F)
            return fail(parser, at, "a control character");
    }
    return true;
}

static bool parse_line(struct parser *parser)
{
    struct word word;
    if (!check_bytes(parser))
        return false;
    if (!next_word(parser, &word))
        return true;
    struct label_rules *rules = parser->rules;
    if (rules->n_rules == LABEL_RULES_MAX)
        return fail(parser, word.at, "the file has more than 1024 rules");
    struct label_rule rule = {.line = 0};
    if (!check_label(parser, &word) || !read_label(parser, &word, &rule) ||
        !read_patterns(parser, &rule))
        return false;
    rules->rules[rules->n_rules++] = rule;
    return true;
}

bool rule_file_parse(struct label_rules *rules, size_t n_bytes, struct rule_error *ret_error)
{
    struct parser parser = {.rules = rules, .error = ret_error, .line = rules->text};
    char *end = rules->text + n_bytes;
    if (n_bytes > RULE_FILE_BYTES_MAX) {
        *ret_error = (struct rule_error){1, 1, "the file has more than 256 KiB"};
        return false;
    }
    rules->text[n_bytes] = '\n';
    for (char *next = rules->text; next < end;) {
        char *newline = memchr(next, '\n', (size_t)(end - next) + 1);
        parser.line = parser.at = next;
        parser.end = newline;
        parser.n_line++;
        if (!parse_line(&parser))
            return false;
        next = newline + 1;
    }
    return true;
}
