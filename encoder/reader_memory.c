/* SPDX-License-Identifier: MIT */
#include "encoder/reader_memory.h"

#include <stdlib.h>

enum { FIRST_CHUNK_BYTES = 16 * 1024, CHUNK_BYTES = 1 << 20, GRAIN_BYTES = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t n_left;
    char *free;
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t piece_bytes)
{
    size_t n_usual = arena->total_bytes > CHUNK_BYTES ? CHUNK_BYTES : FIRST_CHUNK_BYTES;
    size_t n_bytes = piece_bytes > n_usual / 4 ? piece_bytes : n_usual;
    if (n_bytes > ARENA_MAX_BYTES - arena->total_bytes)
        return NULL;
    struct arena_chunk *chunk = malloc(sizeof(*chunk) + GRAIN_BYTES + n_bytes);
    if (!chunk)
        return NULL;
    uintptr_t start = ((uintptr_t)(chunk + 1) + GRAIN_BYTES - 1) & ~(uintptr_t)(GRAIN_BYTES - 1);
    *chunk = (struct arena_chunk){arena->chunks, n_bytes, (char *)start};
    arena->chunks = chunk;
    arena->total_bytes += n_bytes;
    return chunk;
}

void *arena_take(struct arena *arena, size_t n_items, size_t item_bytes)
{
    struct arena_chunk *chunk = arena->chunks;
    size_t n_bytes;
    if (__builtin_mul_overflow(n_items, item_bytes, &n_bytes) || n_bytes > ARENA_MAX_BYTES)
        return NULL;
    n_bytes = (n_bytes + GRAIN_BYTES - 1) & ~(size_t)(GRAIN_BYTES - 1);
    if (!chunk || chunk->n_left < n_bytes)
        chunk = add_chunk(arena, n_bytes);
    if (!chunk)
        return NULL;
    void *piece = chunk->free;
    chunk->free += n_bytes;
    chunk->n_left -= n_bytes;
    return piece;
}

void arena_end(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
    arena->total_bytes = 0;
}
