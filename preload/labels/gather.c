/* SPDX-License-Identifier: MIT */
#include "labels/gather.h"

#include <string.h>
#include <unistd.h>

#include "base/region.h"
#include "base/sys.h"
#include "base/text.h"
#include "base/thread.h"
#include "labels/environment.h"
#include "labels/sources.h"
#include "unwind/find.h"
#include "unwind/walk.h"

struct view {
    struct label_head head;
    uint64_t prefix; /* the key's first 8 bytes as a number of that order, zeros after its end */
    const char *key, *value;
};

struct views {
    size_t n;
    uint64_t marks; /* one of 64 bits for each key: where none is set no key need be compared */
    struct view at[LABELS_MAX];
};

static struct process_labels {
    size_t n;
    struct label_text at[LABELS_MAX];
} *process; /* in KEEP; written once at start */

/* A later value for a key takes the place of the earlier. */
static struct label_text *place_of(const struct label_text *label)
{
    for (size_t i = 0; i < process->n; i++)
        if (process->at[i].key_bytes == label->key_bytes &&
            memcmp(process->at[i].key, label->key, label->key_bytes) == 0)
            return &process->at[i];
    return &process->at[process->n++];
}

static bool is_wanted(const char *key, size_t key_bytes);

/* Below LABELPROF_LABELS: what that said of a key stays. */
static void add_from_environment(void *unused, const struct label_text *label)
{
    (void)unused;
    if (process->n == LABELS_MAX || !is_wanted(label->key, label->key_bytes))
        return;
    size_t n_before = process->n;
    struct label_text *place = place_of(label);
    if (process->n > n_before)
        *place = *label;
}

bool gather_open(void)
{
    process = region_fix(REGION_KEEP, sizeof *process);
    if (!process || !sources_open())
        return false;
    const char *cursor = options.labels;
    struct label_text label;
    bool is_bad;
    while (process->n < LABELS_MAX && label_text_next(&cursor, &label, &is_bad))
        *place_of(&label) = label;
    if (options.label_sources & LABEL_SOURCE_ENVIRONMENT)
        environment_labels(environ, add_from_environment, NULL);
    return true;
}

static bool is_wanted(const char *key, size_t key_bytes)
{
    if (options.label_keys[0])
        return text_list_has(options.label_keys, key, key_bytes);
    return !((key_bytes == 8 && memcmp(key, "trace_id", 8) == 0) ||
             (key_bytes == 7 && memcmp(key, "span_id", 7) == 0));
}

static uint64_t load_4(const char *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return __builtin_bswap32(word);
}

/* Nearly all comparisons of keys are done with it, without a call. */
static uint64_t prefix_of(const char *key, size_t key_bytes)
{
    if (key_bytes >= 8)
        return load_4(key) << 32 | load_4(key + 4);
    if (key_bytes >= 4) /* the two overlap */
        return load_4(key) << 32 | load_4(key + key_bytes - 4) << 8 * (8 - key_bytes);
    uint64_t prefix = 0;
    for (size_t i = 0; i < key_bytes; i++)
        prefix |= (uint64_t)(unsigned char)key[i] << (56 - 8 * i);
    return prefix;
}

static bool is_same_key(const struct view *a, const struct view *b)
{
    return a->prefix == b->prefix && a->head.key_bytes == b->head.key_bytes &&
           (a->head.key_bytes <= 8 || memcmp(a->key + 8, b->key + 8, a->head.key_bytes - 8u) == 0);
}

static struct view *find_key(struct views *views, size_t first, const struct view *wanted)
{
    for (size_t i = first; i < views->n; i++)
        if (is_same_key(&views->at[i], wanted))
            return &views->at[i];
    return NULL;
}

/* The first to bring a key wins: sources are asked from the highest precedence down. */
static void add_view(struct views *views, const struct view *view)
{
    uint64_t mark = UINT64_C(1) << (view->prefix * UINT64_C(0x9E3779B97F4A7C15) >> 58);
    if (views->n == LABELS_MAX || ((views->marks & mark) && find_key(views, 0, view)))
        return;
    if (view->head.kind != LABEL_NUMBER && !is_wanted(view->key, view->head.key_bytes))
        return;
    views->marks |= mark;
    views->at[views->n++] = *view;
}

static void add(struct views *views, struct label_head head, const char *key, const char *value)
{
    struct view view = {head, prefix_of(key, head.key_bytes), key, value};
    add_view(views, &view);
}

static void add_api_labels(struct views *views, const struct thread_block *block)
{
    if (!(options.label_sources & LABEL_SOURCE_API))
        return;
    for (uint32_t i = 0; i < block->n_slots; i++) {
        const struct label_slot *slot = block->slots[i];
        if (slot->is_set)
            add(views,
                (struct label_head){.kind = slot->kind,
                                    .is_variable = true,
                                    .key_bytes = slot->key_bytes,
                                    .value_bytes = slot->value_bytes,
                                    .number = slot->number},
                slot->key, slot->value);
    }
}

/* Labels that another library keeps for this thread. */
struct foreign {
    struct source_reading reading; /* the first member: `add` is given its address */
    struct views *views;
    size_t first; /* the views from here on are the source's that is being read */
};

/* The source's own rule for its duplicates; false: it says nothing, it is the first of its key. */
static bool is_settled(struct foreign *foreign, const struct view *view)
{
    struct view *earlier = find_key(foreign->views, foreign->first, view);
    if (earlier && foreign->reading.last_wins) {
        earlier->value = view->value;
        earlier->head.value_bytes = view->head.value_bytes;
    }
    return earlier;
}

static bool add_foreign(struct source_reading *reading, const char *key, size_t key_bytes,
                        const char *value, size_t value_bytes)
{
    struct foreign *foreign = (struct foreign *)reading;
    struct view view = {.head = {.kind = LABEL_TEXT,
                                 .is_variable = true,
                                 .key_bytes = (uint8_t)key_bytes,
                                 .value_bytes = (uint16_t)value_bytes},
                        .prefix = prefix_of(key, key_bytes),
                        .key = key,
                        .value = value};
    if (!(key_bytes >= 7 && memcmp(key, "pprof::", 7) == 0) && !is_settled(foreign, &view))
        add_view(foreign->views, &view);
    return foreign->views->n < LABELS_MAX;
}

/* An empty value is no label, but until all were read it has kept its key. */
static void drop_empty(struct views *views, size_t first)
{
    size_t n = first;
    for (size_t i = first; i < views->n; i++)
        if (views->at[i].head.value_bytes)
            views->at[n++] = views->at[i];
    views->n = n;
}

static void add_foreign_labels(struct foreign *foreign, enum label_source source)
{
    foreign->first = foreign->views->n;
    sources_read(source, &foreign->reading);
    drop_empty(foreign->views, foreign->first);
}

static void add_thread_name(struct views *views, struct thread_block *block)
{
    const char *name = current_name(block);
    size_t n_bytes = strnlen(name, sizeof block->name);
    if (n_bytes)
        add(views,
            (struct label_head){.kind = LABEL_TEXT, .key_bytes = 11, .value_bytes = (uint16_t)n_bytes},
            "thread_name", name);
}

/* Looked up once: the routine may be unloaded by the time the profile is written. */
static void find_start_frame(struct thread_block *block)
{
    uint32_t module = 0;
    struct cfi_tables tables;
    if (modules_find(block->start_routine, &module, &tables) != MODULES_BUSY)
        block->start_frame = FRAME_OF(module, block->start_routine);
}

static void add_thread_start(struct views *views, struct thread_block *block)
{
    if (block->start_routine && !block->start_frame)
        find_start_frame(block);
    if (!block->start_frame)
        return;
    add(views,
        (struct label_head){
            .kind = LABEL_SYMBOL, .key_bytes = 12, .number = (int64_t)block->start_frame},
        "thread_start", "");
}

static void add_thread_id(struct views *views, struct thread_block *block)
{
    block->tid = block->tid ? block->tid : (uint32_t)sys_gettid();
    add(views,
        (struct label_head){.kind = LABEL_NUMBER, .key_bytes = 9, .number = (int64_t)block->tid},
        "thread_id", "");
}

static void add_process_labels(struct views *views)
{
    for (size_t i = 0; i < process->n; i++) {
        const struct label_text *label = &process->at[i];
        if (label->value_bytes) /* an empty value is no label */
            add(views,
                (struct label_head){.kind = LABEL_TEXT,
                                    .key_bytes = (uint8_t)label->key_bytes,
                                    .value_bytes = (uint16_t)label->value_bytes},
                label->key, label->value);
    }
}

static void collect(struct views *views, struct thread_block *block, struct foreign *foreign)
{
    views->n = 0;
    views->marks = 0;
    add_api_labels(views, block);
    if (foreign) {
        add_foreign_labels(foreign, LABEL_SOURCE_OTEL);
        add_foreign_labels(foreign, LABEL_SOURCE_CUSTOM);
    }
    if (options.thread_labels & THREAD_LABEL_NAME)
        add_thread_name(views, block);
    if (options.thread_labels & THREAD_LABEL_START)
        add_thread_start(views, block);
    if (options.thread_labels & THREAD_LABEL_ID)
        add_thread_id(views, block);
    add_process_labels(views);
}

static int compare_keys(const struct view *a, const struct view *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    size_t n = a->head.key_bytes < b->head.key_bytes ? a->head.key_bytes : b->head.key_bytes;
    int order = memcmp(a->key, b->key, n);
    return order ? order : (int)a->head.key_bytes - (int)b->head.key_bytes;
}

/* Insertion sort: a handful of labels, nearly always in order already. */
static void sort(struct views *views)
{
    for (size_t i = 1; i < views->n; i++) {
        struct view moving = views->at[i];
        size_t at = i;
        for (; at > 0 && compare_keys(&moving, &views->at[at - 1]) < 0; at--)
            views->at[at] = views->at[at - 1];
        views->at[at] = moving;
    }
}

static size_t pack(const struct views *views, unsigned char *out)
{
    unsigned char *at = out;
    for (size_t i = 0; i < views->n; i++) {
        const struct view *view = &views->at[i];
        memcpy(at, &view->head, sizeof view->head);
        at += sizeof view->head;
        memcpy(at, view->key, view->head.key_bytes);
        at += view->head.key_bytes;
        memcpy(at, view->value, view->head.value_bytes);
        at += view->head.value_bytes;
    }
    return (size_t)(at - out);
}

static size_t gather(unsigned char *out, struct thread_block *block, bool has_foreign)
{
    struct views views;
    struct foreign foreign = {
        .reading = {.add = add_foreign, .n_probes_left = SOURCE_PROBES_MAX}, .views = &views};
    for (;;) {
        uint32_t version = block->version;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        collect(&views, block, has_foreign ? &foreign : NULL);
        sort(&views);
        size_t n_bytes = pack(&views, out);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        if (block->version == version)
            return n_bytes;
    }
}

size_t gather_labels(unsigned char *out)
{
    struct thread_block *block = current_block();
    if (!block)
        return 0;
    bool has_foreign = sources_begin();
    size_t n_bytes = gather(out, block, has_foreign);
    if (has_foreign)
        sources_end();
    return n_bytes;
}

bool gather_is_wanted(const char *key, size_t key_bytes)
{
    return is_wanted(key, key_bytes);
}
