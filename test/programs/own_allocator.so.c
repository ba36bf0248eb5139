/* SPDX-License-Identifier: MIT
 * An allocator that may be interrupted anywhere by a handler that allocates: to be preloaded
 * behind the library, where a program's own allocator would stand. Power-of-two classes in one
 * reservation; free lists are stacks whose head carries a tag against ABA. Nothing is given back.
 * A block is preceded by 16 bytes: its class and, for an aligned one, where it really starts. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LG_MIN = 5, N_CLASSES = 26, HEADER_BYTES = 16 };
#define CLASS_BYTES ((size_t)1 << 34) /* address space for each class */

struct header {
    uint32_t size_class, shift_bytes; /* the block's start is this header - shift_bytes */
    uint64_t asked_bytes;
};

static char *heap; /* of all classes, one after the other */
static uint64_t heads[N_CLASSES];     /* tag << 32 | index + 1 of the first free block */
static uint32_t n_taken[N_CLASSES];

static char *block_at(uint32_t size_class, uint32_t index)
{
    return heap + size_class * CLASS_BYTES + ((size_t)index << (LG_MIN + size_class));
}

/* Two threads may both map; one of the mappings wins. */
static void open_heap(void)
{
    char *expected = NULL, *mapped;
    if (__atomic_load_n(&heap, __ATOMIC_ACQUIRE))
        return;
    mapped = mmap(NULL, N_CLASSES * CLASS_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!__atomic_compare_exchange_n(&heap, &expected, mapped, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        munmap(mapped, N_CLASSES * CLASS_BYTES);
}

static char *take(uint32_t size_class)
{
    uint64_t head = __atomic_load_n(&heads[size_class], __ATOMIC_ACQUIRE);
    while ((uint32_t)head) {
        char *block = block_at(size_class, (uint32_t)head - 1);
        uint32_t next = __atomic_load_n((uint32_t *)block, __ATOMIC_RELAXED);
        uint64_t new_head = ((head >> 32) + 1) << 32 | next;
        if (__atomic_compare_exchange_n(&heads[size_class], &head, new_head, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return block;
    }
    return block_at(size_class, __atomic_fetch_add(&n_taken[size_class], 1, __ATOMIC_RELAXED));
}

static void give(uint32_t size_class, char *block)
{
    uint32_t index = (uint32_t)((size_t)(block - block_at(size_class, 0)) >> (LG_MIN + size_class));
    uint64_t head = __atomic_load_n(&heads[size_class], __ATOMIC_RELAXED), new_head;
    do {
        __atomic_store_n((uint32_t *)block, (uint32_t)head, __ATOMIC_RELAXED);
        new_head = ((head >> 32) + 1) << 32 | (index + 1);
    } while (!__atomic_compare_exchange_n(&heads[size_class], &head, new_head, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
}

void *memalign(size_t alignment, size_t bytes)
{
    size_t needed = bytes + alignment + HEADER_BYTES;
    uint32_t size_class = 0;
    if (bytes > (size_t)1 << 29 || alignment > (size_t)1 << 29) {
        errno = ENOMEM;
        return NULL;
    }
    open_heap();
    while ((size_t)1 << (LG_MIN + size_class) < needed)
        size_class++;
    char *block = take(size_class);
    uintptr_t object = ((uintptr_t)block + HEADER_BYTES + alignment - 1) & -alignment;
    struct header *header = (struct header *)(object - HEADER_BYTES);
    *header = (struct header){size_class, (uint32_t)((char *)header - block), bytes};
    return (void *)object;
}

void *malloc(size_t bytes)
{
    return memalign(16, bytes);
}

void free(void *object)
{
    struct header *header = (struct header *)object - 1;
    if (object)
        give(header->size_class, (char *)header - header->shift_bytes);
}

void *calloc(size_t n, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(n, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *object = malloc(total);
    return object ? memset(object, 0, total) : NULL;
}

void *realloc(void *object, size_t bytes)
{
    if (!object)
        return malloc(bytes);
    if (!bytes)
        return free(object), NULL;
    size_t old = ((struct header *)object - 1)->asked_bytes;
    void *moved = malloc(bytes);
    if (!moved)
        return NULL;
    memcpy(moved, object, old < bytes ? old : bytes);
    free(object);
    return moved;
}

int posix_memalign(void **result, size_t alignment, size_t bytes)
{
    void *object = memalign(alignment, bytes);
    if (!object)
        return ENOMEM;
    *result = object;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

size_t malloc_usable_size(void *object)
{
    return object ? ((struct header *)object - 1)->asked_bytes : 0;
}
