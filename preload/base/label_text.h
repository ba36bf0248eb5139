/* SPDX-License-Identifier: MIT
 * Labels as text: `key=value,key=value`, percent-encoded, and the limits every label keeps. Pure.
 */
#ifndef LABELPROF_BASE_LABEL_TEXT_H
#define LABELPROF_BASE_LABEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes the next `key=value` of a LABELPROF_LABELS text at *cursor into key and value (sizes as
 * the label limits; longer ones are cut). False at the end or, with *is_bad set, on a syntax error. */
enum { LABEL_KEY_BYTES = 64, LABEL_VALUE_BYTES = 256, LABELS_MAX = 32 };
struct label_text {
    char key[LABEL_KEY_BYTES + 1];
    char value[LABEL_VALUE_BYTES + 1];
    size_t key_bytes, value_bytes;
};
bool label_text_next(const char **cursor, struct label_text *ret_label, bool *is_bad);

#endif
