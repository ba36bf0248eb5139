/* SPDX-License-Identifier: MIT
 * What a label reader is given and what it hands over: the contract between sources.c, which finds
 * the thread-local slots, and the readers (otel.c, custom_labels.c), which know the ABIs.
 *
 * A reader runs on the thread that owns the slot, maybe in the middle of the writer's own update
 * (the writer calls malloc): both ABIs keep every intermediate state readable for that thread.
 * All else about the memory is checked: pointers, counts, lengths.
 */
#ifndef LABELPROF_LABELS_SOURCE_H
#define LABELPROF_LABELS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SOURCE_LABELS_MAX = 10000, SOURCE_PROBES_MAX = 512 };

struct source_reading {
    /* One label; the bytes stay where they are until the sample is packed. Later ones of the same
     * key replace the earlier if `last_wins`, else they are ignored; an empty value is no label.
     * False: no room for another key. */
    bool (*add)(struct source_reading *reading, const char *key, size_t key_bytes,
                const char *value, size_t value_bytes);
    bool last_wins;
    unsigned n_probes_left; /* system calls this sample may still spend on strange pages */
    char hex[48];           /* room for trace and span id as text */
};

/* Readers take the address of the calling thread's slot. True: somebody's labels are set there,
 * whatever of them was kept. */
bool otel_read(uintptr_t slot, struct source_reading *reading);
bool custom_labels_read_v1(uintptr_t slot, struct source_reading *reading);
bool custom_labels_read_v0(uintptr_t slot, struct source_reading *reading);

#endif
