/* SPDX-License-Identifier: MIT
 * Distinct frames, numbered from 1 in the order they are first seen: ids of locations.
 *
 * Memory: scratch, 16 to 32 bytes a frame. Threads: one at a time. Failure: id 0.
 */
#ifndef LABELPROF_ENCODER_FRAMES_H
#define LABELPROF_ENCODER_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include "encoder/profile_writer.h"
#include "encoder/scratch.h"

/* All zero but scratch: valid and empty. */
struct frames {
    struct scratch *scratch;
    struct scratch_array seen;  /* uint64_t: the frame of id i at i - 1 */
    struct scratch_array slots; /* uint32_t: id, 0 free; open addressing */
    size_t n_seen, n_slots;
};

uint32_t frames_id(struct frames *frames, uint64_t frame);
void frames_end(struct frames *frames);

static inline uint64_t frames_at(const struct frames *frames, uint32_t id)
{
    return ((const uint64_t *)frames->seen.start)[id - 1];
}

static inline uint64_t frame_address(uint64_t frame)
{
    return frame & ((UINT64_C(1) << PROFILE_FRAME_ADDRESS_BITS) - 1);
}

static inline uint32_t frame_mapping(uint64_t frame)
{
    return (uint32_t)(frame >> PROFILE_FRAME_ADDRESS_BITS);
}

#endif
