/* SPDX-License-Identifier: MIT
 * A file of label rules, parsed: which label a frame gives by its function or its module.
 *
 *   component=prepare  function sqlite3_prepare* sqlite3RunParser   # a comment
 *   subsystem=tls      module libssl.so* libcrypto.so*
 *   component=init     function *_init  module libfoo.so*
 *
 * One rule a line: a label, percent-encoded as in LABELPROF_LABELS, and patterns after `function`,
 * after `module`, or after both. Any one of the patterns after a word will do; where both words
 * stand, both must match. In a pattern * is any run of bytes and ? any byte. A function goes by the
 * linker's name (C++ mangled) without a symbol version, a module by the base name of its file.
 *
 * Place: shared by the library and the command. Pure: no I/O, no allocation, safe anywhere.
 * Failure: false, with line, column (in bytes, from 1) and what is wrong.
 */
#ifndef LABELPROF_LABELS_RULE_FILE_H
#define LABELPROF_LABELS_RULE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"

enum {
    RULE_FILE_BYTES_MAX = 256 * 1024,
    RULE_LINE_BYTES_MAX = 1024,
    LABEL_RULES_MAX = 1024,
    RULE_PATTERNS_MAX = 4096,
    RULE_KEYS_MAX = LABELS_MAX,
};

struct rule_patterns {
    uint16_t first, n; /* in label_rules.patterns */
};

struct label_rule {
    uint32_t line, column; /* where its label stands */
    uint32_t value;        /* in label_rules.text */
    uint16_t value_bytes;
    uint16_t key;                            /* in label_rules.keys */
    struct rule_patterns functions, modules; /* none: not asked for */
};

struct rule_key {
    uint32_t at; /* in label_rules.text */
    uint32_t n_bytes;
    bool is_wanted; /* the parser wants all */
};

/* Half a megabyte; zeroed before use, with the file's bytes in `text`. */
struct label_rules {
    uint32_t n_rules, n_keys, n_patterns;
    struct label_rule rules[LABEL_RULES_MAX]; /* in the order of the file */
    struct rule_key keys[RULE_KEYS_MAX];
    uint32_t patterns[RULE_PATTERNS_MAX]; /* in `text`, ending in NUL */
    char text[RULE_FILE_BYTES_MAX + 1];   /* decoded in place */
};

struct rule_error {
    uint32_t line, column;
    const char *what;
};

/* Of the first n_bytes of rules->text. */
bool rule_file_parse(struct label_rules *rules, size_t n_bytes, struct rule_error *ret_error);

bool rule_pattern_matches(const char *pattern, const char *name, size_t n_bytes);

/* True also for a rule that doesn't ask for one. A module is given by its file. */
bool rule_takes_module(const struct label_rules *rules, const struct label_rule *rule,
                       const char *file);
bool rule_takes_function(const struct label_rules *rules, const struct label_rule *rule,
                         const char *name, size_t n_bytes);

/* Which rules label a stack: per key the frame nearest the leaf wins, then the first rule. Offer,
 * frame by frame from the leaf, every rule that takes the frame, in any order. */
struct rule_choice {
    uint32_t settled;             /* bit k: by a frame nearer the leaf */
    uint16_t best[RULE_KEYS_MAX]; /* rule + 1 */
};
void rule_choice_offer(struct rule_choice *choice, const struct label_rules *rules, unsigned rule);
/* The frame is done. True: so is the stack. */
bool rule_choice_next_frame(struct rule_choice *choice, const struct label_rules *rules);
/* The rules that won, in order of their keys' appearance in the file; returns how many. */
unsigned rule_choice_list(const struct rule_choice *choice, uint16_t ret_rules[RULE_KEYS_MAX]);

#endif
