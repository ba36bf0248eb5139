/* SPDX-License-Identifier: MIT */
#include "labels/process_context.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/region.h"
#include "base/sys.h"
#include "base/text.h"
#include "labels/key_map.h"

enum {
    HEADER_VERSION = 2,
    PAYLOAD_MAX_BYTES = 64 * 1024,
    MAPS_BUFFER_BYTES = 4096,
    READ_TRIES = 3, /* of a header that changes under us */
};
/* From one look to the next, with and without a mapping to look at. */
static const uint64_t soon_ns = 100 * 1000 * 1000, later_ns = 1000 * 1000 * 1000;

/* As in memory. */
struct header {
    char magic[8];
    uint32_t version;
    uint32_t payload_bytes;
    uint64_t published_at_ns; /* 0: being changed */
    uint64_t payload;
};
_Static_assert(sizeof(struct header) == 32, "the published header");

static struct context {
    uint32_t active;      /* atomic: which of the maps is read */
    uint32_t is_wanted;   /* atomic, relaxed: a wish lost or doubled is wished again */
    uint64_t next_try_ns; /* atomic, relaxed */
    uintptr_t mapping;    /* 0: not found yet; atomic, relaxed; written under the lock */
    uint64_t published_at_ns; /* of what is in the active map. Under the lock, as the next */
    uint64_t looked_at_ns;    /* what published_now said before the last look */
    struct key_map maps[2];
    uint8_t payload[PAYLOAD_MAX_BYTES];
} *context; /* in KEEP: names stay true in a child */

static struct lock *refresh_lock; /* in LEDGER: free in the child of fork */

bool process_context_open(void)
{
    refresh_lock = region_fix(REGION_LEDGER, sizeof *refresh_lock);
    context = region_fix(REGION_KEEP, sizeof *context);
    return refresh_lock && context;
}

const char *process_context_key(uint8_t index, size_t *ret_bytes)
{
    /* Pairs with the release in read_names. */
    const struct key_map *map = &context->maps[__atomic_load_n(&context->active, __ATOMIC_ACQUIRE)];
    if (unlikely(index >= map->n_keys)) {
        __atomic_store_n(&context->is_wanted, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    *ret_bytes = map->key_bytes[index];
    return map->keys[index];
}

bool process_context_is_wanted(void)
{
    return __atomic_load_n(&context->is_wanted, __ATOMIC_RELAXED);
}

bool process_context_is_time(void)
{
    return sys_monotonic_ns() >= __atomic_load_n(&context->next_try_ns, __ATOMIC_RELAXED);
}

void process_context_new_cycle(void)
{
    if (__atomic_load_n(&context->mapping, __ATOMIC_RELAXED))
        __atomic_store_n(&context->is_wanted, 1, __ATOMIC_RELAXED);
}

/* When the names were published, by a look at the page itself, which nobody else may unmap. */
static uint64_t published_now(void)
{
    if (!context->mapping || !sys_can_read(context->mapping))
        return 0;
    const struct header *header = (const struct header *)context->mapping;
    return __atomic_load_n(&header->published_at_ns, __ATOMIC_RELAXED);
}

static bool copy(int memory, void *to, uint64_t from, size_t n_bytes)
{
    return sys_call(SYS_pread64, memory, (long)to, (long)n_bytes, (long)from, 0, 0) ==
           (long)n_bytes;
}

static bool read_header(int memory, uintptr_t mapping, struct header *header)
{
    return copy(memory, header, mapping, sizeof *header) &&
           memcmp(header->magic, "OTEL_CTX", sizeof header->magic) == 0 &&
           header->version == HEADER_VERSION && header->payload_bytes <= PAYLOAD_MAX_BYTES;
}

/* ---- finding the mapping ---- */

/* "start-end perms offset device inode  name"; 0: another one's line. */
static uintptr_t named_start(const char *line, size_t n_bytes)
{
    static const char *const names[] = {"[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
                                        "/memfd:OTEL_CTX", "/memfd:OTEL_CTX (deleted)"};
    uintptr_t start = 0;
    size_t at = 0;
    for (; at < n_bytes && line[at] != '-'; at++)
        start = start << 4 | (uintptr_t)(line[at] <= '9' ? line[at] - '0' : line[at] - 'a' + 10);
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        size_t n_name = strlen(names[i]);
        if (n_bytes > at + n_name && line[n_bytes - n_name - 1] == ' ' &&
            memcmp(line + n_bytes - n_name, names[i], n_name) == 0)
            return start;
    }
    return 0;
}

struct search {
    int memory;
    uintptr_t found;
};

static void look_at_line(struct search *search, const char *line, size_t n_bytes)
{
    struct header header;
    uintptr_t start = search->found ? 0 : named_start(line, n_bytes);
    if (start && read_header(search->memory, start, &header))
        search->found = start;
}

/* Takes whole lines from the buffer and returns how many bytes are left of the last. A line that
 * fills the buffer is no name of ours: its beginning is dropped. */
static size_t take_lines(struct search *search, char *buffer, size_t n_bytes)
{
    char *line = buffer;
    for (char *end; (end = memchr(line, '\n', n_bytes - (size_t)(line - buffer))); line = end + 1)
        look_at_line(search, line, (size_t)(end - line));
    size_t n_left = n_bytes - (size_t)(line - buffer);
    if (n_left == MAPS_BUFFER_BYTES)
        return 0;
    memmove(buffer, line, n_left);
    return n_left;
}

static uintptr_t find_mapping(int memory)
{
    char buffer[MAPS_BUFFER_BYTES];
    struct search search = {.memory = memory};
    size_t n_bytes = 0;
    int maps = sys_open_read("/proc/self/maps");
    if (maps < 0)
        return 0;
    for (long n; !search.found &&
                 (n = sys_read(maps, buffer + n_bytes, sizeof buffer - n_bytes)) > 0;)
        n_bytes = take_lines(&search, buffer, n_bytes + (size_t)n);
    sys_close(maps);
    return search.found;
}

/* ---- reading it ---- */

/* The payload belongs to the header if the header is the same after it was copied. */
static bool copy_payload(int memory, struct header *header)
{
    for (int i = 0; i < READ_TRIES; i++) {
        struct header after;
        if (!read_header(memory, context->mapping, header))
            return false;
        if (header->published_at_ns && copy(memory, context->payload, header->payload,
                                            header->payload_bytes) &&
            read_header(memory, context->mapping, &after) &&
            memcmp(header, &after, sizeof after) == 0)
            return true;
    }
    return false;
}

static bool read_names(int memory)
{
    struct header header;
    uint32_t other = !context->active;
    if (!copy_payload(memory, &header) || header.published_at_ns == context->published_at_ns ||
        !key_map_parse(&context->maps[other], context->payload, header.payload_bytes))
        return false;
    context->published_at_ns = header.published_at_ns;
    __atomic_store_n(&context->active, other, __ATOMIC_RELEASE); /* pairs with ..._key */
    return true;
}

static bool look(void)
{
    struct header header;
    int memory = sys_open_read("/proc/self/mem");
    if (memory < 0)
        return false;
    if (!context->mapping || !read_header(memory, context->mapping, &header))
        __atomic_store_n(&context->mapping, find_mapping(memory), __ATOMIC_RELAXED);
    bool is_new = context->mapping && read_names(memory);
    sys_close(memory);
    return is_new;
}

static bool look_and_note(uint64_t published_at_ns)
{
    __atomic_store_n(&context->is_wanted, 0, __ATOMIC_RELAXED);
    context->looked_at_ns = published_at_ns;
    bool is_new = look();
    uint64_t wait_ns = context->mapping ? soon_ns : later_ns;
    __atomic_store_n(&context->next_try_ns, sys_monotonic_ns() + wait_ns, __ATOMIC_RELAXED);
    return is_new;
}

bool process_context_refresh(bool is_alone)
{
    if (likely(!process_context_is_wanted()) || !lock_try(refresh_lock))
        return false;
    uint64_t now_ns = is_alone ? published_now() : 0;
    bool is_new = ((now_ns && now_ns != context->looked_at_ns) || process_context_is_time()) &&
                  look_and_note(now_ns);
    lock_drop(refresh_lock);
    return is_new;
}
