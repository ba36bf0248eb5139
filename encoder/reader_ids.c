/* SPDX-License-Identifier: MIT */
#include "encoder/reader_ids.h"

#include <stdlib.h>

bool id_map_begin(struct id_map *map, struct arena *arena, size_t n_ids)
{
    *map = (struct id_map){arena_take(arena, n_ids, sizeof(*map->places)), n_ids, true};
    return map->places != NULL;
}

void id_map_set(struct id_map *map, size_t index, uint64_t id)
{
    map->places[index] = (struct id_place){id, index};
    if (id != index + 1)
        map->is_sequential = false;
}

static int compare(const void *a, const void *b)
{
    uint64_t left = ((const struct id_place *)a)->id, right = ((const struct id_place *)b)->id;
    return left < right ? -1 : left > right;
}

bool id_map_end(struct id_map *map)
{
    if (map->is_sequential)
        return true;
    qsort(map->places, map->n_places, sizeof(*map->places), compare);
    for (size_t i = 1; i < map->n_places; i++)
        if (map->places[i].id == map->places[i - 1].id)
            return false;
    return map->places[0].id != 0;
}

size_t id_map_index(const struct id_map *map, uint64_t id)
{
    struct id_place wanted = {id, 0};
    if (map->is_sequential)
        return id >= 1 && id <= map->n_places ? (size_t)(id - 1) : ID_UNKNOWN;
    const struct id_place *found =
        bsearch(&wanted, map->places, map->n_places, sizeof(*map->places), compare);
    return found ? found->index : ID_UNKNOWN;
}
