/* SPDX-License-Identifier: MIT */
#include "encoder/names.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static void sift_down(struct symbol_wanted *heap, size_t at, size_t n)
{
    struct symbol_wanted moved = heap[at];
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && heap[child + 1].address > heap[child].address)
            child++;
        if (heap[child].address <= moved.address)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* A heap sort: in place, where qsort may call malloc. By frame, hence by mapping, then address. */
static void sort(struct symbol_wanted *wanted, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(wanted, i, n);
    for (size_t end = n; end-- > 1;) {
        struct symbol_wanted largest = wanted[0];
        wanted[0] = wanted[end];
        wanted[end] = largest;
        sift_down(wanted, 0, end);
    }
}

static int emit_names(const struct names_job *job, uint32_t mapping,
                      const struct symbol_wanted *wanted, size_t n)
{
    int64_t function = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_same =
            i > 0 && wanted[i].start == wanted[i - 1].start && wanted[i].name == wanted[i - 1].name;
        if (!is_same) {
            struct profile_text name = symbols_name(job->symbols, &wanted[i]);
            function = name.n_bytes ? job->emit(job->context, mapping, name) : 0;
        }
        if (function < 0)
            return (int)function;
        job->functions[wanted[i].id - 1] = (uint32_t)function;
    }
    return 0;
}

/* The two frames that stand for something else than a place. */
static int name_pseudo_frames(const struct names_job *job, const struct symbol_wanted *wanted,
                              size_t n)
{
    static const char *const names[] = {"[truncated]", "[other stacks]"};
    for (size_t i = 0; i < n; i++) {
        if (wanted[i].address < 1 || wanted[i].address > 2)
            continue;
        const char *name = names[wanted[i].address - 1];
        int64_t id = job->emit(job->context, 0, (struct profile_text){name, strlen(name)});
        if (id < 0)
            return (int)id;
        job->functions[wanted[i].id - 1] = (uint32_t)id;
    }
    return 0;
}

static int name_mapping(const struct names_job *job, uint32_t mapping, struct symbol_wanted *wanted,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        wanted[i].address = frame_address(wanted[i].address);
    if (mapping == 0)
        return name_pseudo_frames(job, wanted, n);
    if (mapping > job->n_mappings || !symbols_open(job->symbols, &job->mappings[mapping - 1]))
        return 0;
    symbols_find(job->symbols, wanted, n);
    int error = emit_names(job, mapping, wanted, n);
    symbols_close(job->symbols);
    return error;
}

int names_find(const struct names_job *job, struct scratch *scratch)
{
    struct scratch_array array = {NULL, 0};
    size_t n = job->frames->n_seen;
    int error = 0;
    if (!scratch_reserve(scratch, &array, n * sizeof(struct symbol_wanted)))
        return -ENOMEM;
    struct symbol_wanted *wanted = array.start;
    for (uint32_t id = 1; id <= n; id++)
        wanted[id - 1] = (struct symbol_wanted){.address = frames_at(job->frames, id), .id = id};
    sort(wanted, n);
    for (size_t first = 0, next; first < n && !error; first = next) {
        uint32_t mapping = frame_mapping(wanted[first].address);
        next = first + 1;
        while (next < n && frame_mapping(wanted[next].address) == mapping)
            next++;
        error = name_mapping(job, mapping, wanted + first, next - first);
    }
    scratch_drop(scratch, &array);
    return error;
}

static struct profile_text describe(struct symbols *symbols, const struct profile_mapping *mapping,
                                    uint64_t address)
{
    struct line line = line_in(symbols->name, sizeof(symbols->name));
    if (mapping && mapping->file) {
        const char *slash = strrchr(mapping->file, '/');
        line_add(&line, slash ? slash + 1 : mapping->file);
        line_add(&line, "+");
        address = address - mapping->start + mapping->offset;
    }
    line_add(&line, "0x");
    line_add_hex(&line, address);
    return (struct profile_text){line.bytes, line.n_bytes};
}

struct profile_text name_of_frame(struct symbols *symbols, const struct profile_mapping *mapping,
                                  uint64_t address)
{
    struct symbol_wanted wanted = {.address = address};
    struct profile_text name = {NULL, 0};
    if (mapping && symbols_open(symbols, mapping)) {
        symbols_find(symbols, &wanted, 1);
        name = symbols_name(symbols, &wanted);
        symbols_close(symbols);
    }
    return name.n_bytes ? name : describe(symbols, mapping, address);
}
