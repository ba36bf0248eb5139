/* SPDX-License-Identifier: MIT */
#include "publish/export.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"
#include "encoder/profile_writer.h"
#include "labels/rule_modules.h"
#include "labels/sets.h"
#include "publish/sample_labels.h"
#include "record/book.h"
#include "record/cycle.h"
#include "record/records.h"
#include "record/stacks.h"
#include "unwind/modules.h"

static const struct profile_value_type heap_types[] = {
    {"alloc_objects", "count"},
    {"alloc_space", "bytes"},
    {"inuse_objects", "count"},
    {"inuse_space", "bytes"},
};

static void add_mappings(struct profile_writer *writer)
{
    /* Module id i is mapping i: frames go to the encoder as they are. */
    for (uint32_t id = 1; id <= modules_count(); id++) {
        const struct module *module = modules_get(id);
        struct profile_mapping mapping = {.start = module->start,
                                          .limit = module->limit,
                                          .offset = module->file_offset,
                                          .file = module->path,
                                          .build_id = module->build_id,
                                          .build_id_bytes = module->build_id_bytes};
        profile_add_mapping(writer, &mapping);
    }
}

static void add_comment(struct profile_writer *writer, const char *key, uint64_t number)
{
    char buffer[96];
    struct line line = line_in(buffer, sizeof buffer);
    line_add(&line, key);
    line_add(&line, "=");
    line_add_number(&line, number);
    profile_add_comment(writer, buffer, line.n_bytes);
}

/* The arguments as the program shows them now, NULs as spaces. */
static void add_command_comment(struct profile_writer *writer)
{
    static char buffer[1024]; /* under the publish lock; the caller's stack may be small */
    struct line line = line_in(buffer, sizeof buffer);
    line_add(&line, "command=");
    int fd = sys_open_read("/proc/self/cmdline");
    if (fd < 0)
        return;
    long n_bytes = sys_read(fd, buffer + line.n_bytes, sizeof buffer - line.n_bytes);
    sys_close(fd);
    for (long i = 0; i < n_bytes; i++, line.n_bytes++)
        if (buffer[line.n_bytes] == '\0')
            buffer[line.n_bytes] = ' ';
    while (line.n_bytes && buffer[line.n_bytes - 1] == ' ')
        line.n_bytes--;
    profile_add_comment(writer, buffer, line.n_bytes);
}

static void add_comments(struct profile_writer *writer)
{
    static const char version[] = "labelprof_version=" LABELPROF_VERSION;
    struct book_counts counts = book_counts();
    profile_add_comment(writer, version, sizeof version - 1);
    add_command_comment(writer);
    add_comment(writer, "sample_bytes", options.sample_bytes);
    if (book_lg_factor())
        add_comment(writer, "interval_bytes_now", options.sample_bytes << book_lg_factor());
    add_comment(writer, "cycle", cycle_number());
    add_comment(writer, "samples", counts.samples);
    add_comment(writer, "refused", counts.refused);
    add_comment(writer, "lost", 0);
    if (counts.implied_frees)
        add_comment(writer, "implied_frees", counts.implied_frees);
    if (sets_did_overflow())
        add_comment(writer, "label_sets_over_limit", options.max_label_sets);
    if (rule_modules_skipped())
        add_comment(writer, "rules_without_functions", rule_modules_skipped());
    add_comment(writer, "stacks", stacks_count());
    add_comment(writer, "label_sets", sets_live_count());
    add_comment(writer, "memory_used_bytes", region_used_bytes(REGION_LEDGER));
    add_comment(writer, "memory_budget_bytes", region_size_bytes(REGION_LEDGER));
}

static void fill_labels(const struct record *record, struct sample_labels *labels)
{
    sample_labels_fill(labels, region_at(record->set), region_at(record->stack));
    labels->at[labels->n++] = (struct profile_label){.kind = PROFILE_LABEL_NUMBER,
                                                     .key = {"bytes", 5},
                                                     .text = {"bytes", 5},
                                                     .number = (int64_t)record->size_label};
}

static int64_t rounded(int64_t fixed, unsigned lg_unit)
{
    return (fixed + (INT64_C(1) << (lg_unit - 1))) >> lg_unit;
}

static void add_sample(struct profile_writer *writer, const struct record *record)
{
    const struct totals *active = &record->active;
    int64_t values[] = {
        rounded(active->alloc_objects, LG_OBJECT_UNIT), rounded(active->alloc_bytes, LG_BYTE_UNIT),
        rounded(active->inuse_objects, LG_OBJECT_UNIT), rounded(active->inuse_bytes, LG_BYTE_UNIT)};
    const struct stack *stack = region_at(record->stack);
    static struct sample_labels labels; /* under the publish lock */
    fill_labels(record, &labels);
    profile_add_sample(writer, stack->frames, stack->n_frames, values, labels.at, labels.n);
}

static void add_samples(struct profile_writer *writer)
{
    uint64_t cursor = 0;
    for (struct record *record = records_next(&cursor); record; record = records_next(&cursor)) {
        /* Only `active` tells a record apart from one being made or dropped: see records.h. */
        const struct totals *active = &record->active;
        if (active->alloc_objects | active->inuse_objects)
            add_sample(writer, record);
    }
}

int export_heap(struct profile_sink *sink, const char *default_type, struct export_times times)
{
    struct profile_head head = {.value_types = heap_types,
                                .n_value_types = sizeof heap_types / sizeof heap_types[0],
                                .default_type = default_type,
                                .period_type = {"space", "bytes"},
                                .period = (int64_t)options.sample_bytes,
                                .time_nanos = (int64_t)times.now_realtime_ns,
                                .duration_nanos = (int64_t)times.duration_ns};
    struct profile_writer *writer = profile_begin(sink, &head);
    if (!writer)
        return -ENOMEM;
    add_mappings(writer);
    add_comments(writer);
    add_samples(writer);
    return profile_end(writer);
}
