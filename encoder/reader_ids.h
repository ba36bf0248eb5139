/* SPDX-License-Identifier: MIT
 * From the ids in a file, which may be any numbers, to indexes.
 *
 * Files almost always count up from 1, so that an id is an index; for the others, a sorted list.
 * Memory: the arena. Failure: false; ID_UNKNOWN for an id that is not there.
 */
#ifndef LABELPROF_ENCODER_READER_IDS_H
#define LABELPROF_ENCODER_READER_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "encoder/reader_memory.h"

#define ID_UNKNOWN SIZE_MAX

struct id_place {
    uint64_t id;
    size_t index;
};

struct id_map {
    struct id_place *places;
    size_t n_places;
    bool is_sequential;
};

bool id_map_begin(struct id_map *map, struct arena *arena, size_t n_ids);
void id_map_set(struct id_map *map, size_t index, uint64_t id); /* for each index, in order */
bool id_map_end(struct id_map *map); /* false: an id is 0 or there twice */
size_t id_map_index(const struct id_map *map, uint64_t id);

#endif
