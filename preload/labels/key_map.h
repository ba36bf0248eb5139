/* SPDX-License-Identifier: MIT
 * The names of OpenTelemetry thread attributes by index, read from a process context's payload:
 * a protobuf message {resource = 1, attributes = 2}, of which the one attribute
 * `threadlocal.attribute_key_map` (an array of strings) counts.
 *
 * Parsed by hand into fixed room: no allocation, every length checked against what is left.
 * Threads: a value of the caller's.
 */
#ifndef LABELPROF_LABELS_KEY_MAP_H
#define LABELPROF_LABELS_KEY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"

enum { KEY_MAP_MAX = 256 };

struct key_map {
    uint32_t n_keys;
    uint8_t key_bytes[KEY_MAP_MAX]; /* 0: a name that can't be a label's key */
    char keys[KEY_MAP_MAX][LABEL_KEY_BYTES];
};

/* False: not such a message; *ret is undefined then. Without the attribute the map is empty. */
bool key_map_parse(struct key_map *ret, const uint8_t *payload, size_t n_bytes);

#endif
