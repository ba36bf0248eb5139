/* SPDX-License-Identifier: MIT
 * The LABELPROF_* variables: one table drives parsing, bounds, `labelprof help env`, the man page.
 *
 * Threads: options_parse runs once, before anybody reads; after it `options` never changes.
 * Allocation: none; texts are copied, since programs overwrite their environment (setproctitle).
 * Failure: options_parse returns false and one line that names the variable, the value and what is
 * accepted. Linked into the library and the command.
 */
#ifndef LABELPROF_BASE_OPTIONS_H
#define LABELPROF_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/label_text.h"

enum { OPTION_TEXT_BYTES = 4096, STACK_DEPTH_MAX = 512 };

enum profile_type { PROFILE_HEAP = 1, PROFILE_ALLOCS = 2 };                     /* bit set */
enum thread_label { THREAD_LABEL_NAME = 1, THREAD_LABEL_START = 2, THREAD_LABEL_ID = 4 };
enum label_source {
    LABEL_SOURCE_API = 1,
    LABEL_SOURCE_OTEL = 2,
    LABEL_SOURCE_CUSTOM = 4,
    LABEL_SOURCE_ENVIRONMENT = 8,
};

struct options {
    char out[OPTION_TEXT_BYTES];
    uint64_t profiles; /* enum profile_type bits */
    uint64_t sample_bytes;
    uint64_t dump_interval_s;
    uint64_t dump_signal;  /* 0: none */
    uint64_t exit_signals; /* bit n: signal n */
    uint64_t cycle_ms;
    char labels[OPTION_TEXT_BYTES];
    uint64_t thread_labels; /* enum thread_label bits */
    uint64_t label_sources; /* enum label_source bits */
    char label_keys[OPTION_TEXT_BYTES];
    char rules[OPTION_TEXT_BYTES];
    uint64_t max_label_sets;
    uint64_t max_memory;
    uint64_t stack_depth;
    uint64_t children;
    uint64_t verbose;
    uint64_t disable;
};

enum option_kind {
    OPTION_SIZE,    /* whole number, optional k m g t */
    OPTION_NUMBER,  /* whole number */
    OPTION_TEXT,
    OPTION_TEMPLATE, /* a path with % letters of out_path.h */
    OPTION_CHOICES, /* comma list of `choices`, or `none` where it is one of them */
    OPTION_SIGNAL,
    OPTION_SIGNALS,
    OPTION_LABELS,  /* key=value,... percent-encoded */
    OPTION_LATER,   /* known, but this version does not have the feature */
};

struct option_row {
    const char *name; /* the whole variable */
    enum option_kind kind;
    size_t offset; /* of its field in struct options */
    const char *default_text;
    uint64_t min, max;
    const char *choices; /* OPTION_CHOICES: names in bit order, comma-separated */
    const char *accepts; /* what a good value is, for the error and the help */
    const char *meaning;
};

extern const struct option_row option_rows[];
extern const size_t n_option_rows;

extern struct options options;

/* Reads NAME=value strings. False: `error` holds one line without a newline, *ret is undefined. */
bool options_parse(struct options *ret, char *const *environment, char *error, size_t error_bytes);

/* One variable; NULL text is its default. Exposed for tests. */
bool option_read(const struct option_row *row, const char *text, struct options *ret);

#endif
