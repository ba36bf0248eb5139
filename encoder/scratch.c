/* SPDX-License-Identifier: MIT */
#include "encoder/scratch.h"

#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "base/sys.h"

struct scratch_chunk {
    struct scratch_chunk *next;
    size_t n_bytes, n_used;
};

enum { CHUNK_BYTES = 64 * 1024, CHUNK_HEAD_BYTES = 32, GRAIN_BYTES = 16 };

_Static_assert(sizeof(struct scratch_chunk) <= CHUNK_HEAD_BYTES, "pieces start after the head");

static void *map(struct scratch *scratch, size_t n_bytes)
{
    void *start = sys_map(n_bytes);
    if (!start)
        return NULL;
    scratch->total_bytes += n_bytes;
    if (scratch->total_bytes > scratch->peak_bytes)
        scratch->peak_bytes = scratch->total_bytes;
    return start;
}

static void unmap(struct scratch *scratch, void *start, size_t n_bytes)
{
    sys_unmap(start, n_bytes);
    scratch->total_bytes -= n_bytes;
}

static struct scratch_chunk *add_chunk(struct scratch *scratch, size_t piece_bytes)
{
    size_t n_bytes = round_up(CHUNK_HEAD_BYTES + piece_bytes, PAGE_BYTES);
    if (n_bytes < CHUNK_BYTES)
        n_bytes = CHUNK_BYTES;
    struct scratch_chunk *chunk = map(scratch, n_bytes);
    if (!chunk)
        return NULL;
    *chunk = (struct scratch_chunk){scratch->chunks, n_bytes, CHUNK_HEAD_BYTES};
    scratch->chunks = chunk;
    return chunk;
}

void *scratch_take(struct scratch *scratch, size_t n_bytes)
{
    struct scratch_chunk *chunk = scratch->chunks;
    if (n_bytes > SIZE_MAX / 4)
        return NULL;
    n_bytes = round_up(n_bytes, GRAIN_BYTES);
    if (!chunk || chunk->n_bytes - chunk->n_used < n_bytes)
        chunk = add_chunk(scratch, n_bytes);
    if (!chunk)
        return NULL;
    void *piece = (char *)chunk + chunk->n_used;
    chunk->n_used += n_bytes;
    return piece;
}

bool scratch_reserve(struct scratch *scratch, struct scratch_array *array, size_t n_bytes)
{
    if (likely(n_bytes <= array->n_bytes_mapped))
        return true;
    if (n_bytes > SIZE_MAX / 4)
        return false;
    size_t n_new = round_up(n_bytes, PAGE_BYTES);
    if (n_new < 2 * array->n_bytes_mapped)
        n_new = 2 * array->n_bytes_mapped;
    void *start = map(scratch, n_new);
    if (!start)
        return false;
    if (array->start)
        memcpy(start, array->start, array->n_bytes_mapped);
    scratch_drop(scratch, array);
    *array = (struct scratch_array){start, n_new};
    return true;
}

void scratch_drop(struct scratch *scratch, struct scratch_array *array)
{
    if (array->start)
        unmap(scratch, array->start, array->n_bytes_mapped);
    *array = (struct scratch_array){NULL, 0};
}

void scratch_end(struct scratch *scratch)
{
    struct scratch_chunk *chunk = scratch->chunks;
    scratch->chunks = NULL; /* `scratch` itself may lie in a chunk's owner, never in a chunk */
    while (chunk) {
        struct scratch_chunk *next = chunk->next;
        unmap(scratch, chunk, chunk->n_bytes);
        chunk = next;
    }
}
