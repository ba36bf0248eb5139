/* SPDX-License-Identifier: MIT
 * Which function covers each location: sorts them by mapping and asks each file once.
 *
 * Place: the end of a profile, when all addresses are known. Memory: scratch, 24 bytes a location.
 * Threads: one at a time. Failure: -ENOMEM, or what `emit` returned; a location without a name is
 * no failure.
 */
#ifndef LABELPROF_ENCODER_NAMES_H
#define LABELPROF_ENCODER_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include "encoder/frames.h"
#include "encoder/symbols.h"

struct names_job {
    const struct frames *frames;
    const struct profile_mapping *mappings; /* of id i at i - 1 */
    size_t n_mappings;
    struct symbols *symbols;
    /* Called for each run of locations with one name, mapping by mapping; gives the id that stands
     * for the function, or -errno. */
    int64_t (*emit)(void *context, uint32_t mapping, struct profile_text name);
    void *context;
    uint32_t *functions; /* out: function id of location i at i - 1; zeroed by the caller */
};

int names_find(const struct names_job *job, struct scratch *scratch);

/* The function at one frame, or "file+0x12" or "0x12"; valid until symbols are used again. */
struct profile_text name_of_frame(struct symbols *symbols, const struct profile_mapping *mapping,
                                  uint64_t address);

#endif
