/* SPDX-License-Identifier: MIT */
#include "encoder/frames.h"

#include "base/attributes.h"

enum { FIRST_SLOTS = 4096 };

static uint32_t *find_slot(const struct frames *frames, uint64_t frame)
{
    uint32_t *slots = frames->slots.start;
    /* The high half of the product depends on every bit of the frame. */
    for (size_t i = (frame * UINT64_C(0x9E3779B97F4A7C15)) >> 32;; i++) {
        uint32_t *slot = &slots[i & (frames->n_slots - 1)];
        if (*slot == 0 || frames_at(frames, *slot) == frame)
            return slot;
    }
}

static bool make_room(struct frames *frames)
{
    struct scratch_array slots = {NULL, 0};
    size_t n_slots = frames->n_slots ? 2 * frames->n_slots : FIRST_SLOTS;
    if (likely(2 * (frames->n_seen + 1) <= frames->n_slots))
        return true;
    if (n_slots > UINT32_MAX || !scratch_reserve(frames->scratch, &slots, n_slots * 4))
        return false;
    scratch_drop(frames->scratch, &frames->slots);
    frames->slots = slots;
    frames->n_slots = n_slots;
    for (uint32_t id = 1; id <= frames->n_seen; id++)
        *find_slot(frames, frames_at(frames, id)) = id;
    return true;
}

uint32_t frames_id(struct frames *frames, uint64_t frame)
{
    if (unlikely(!make_room(frames)))
        return 0;
    uint32_t *slot = find_slot(frames, frame);
    if (likely(*slot != 0))
        return *slot;
    if (!scratch_reserve(frames->scratch, &frames->seen, (frames->n_seen + 1) * sizeof(frame)))
        return 0;
    ((uint64_t *)frames->seen.start)[frames->n_seen++] = frame;
    return *slot = (uint32_t)frames->n_seen;
}

void frames_end(struct frames *frames)
{
    scratch_drop(frames->scratch, &frames->seen);
    scratch_drop(frames->scratch, &frames->slots);
}
