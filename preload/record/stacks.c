/* SPDX-License-Identifier: MIT */
#include "record/stacks.h"

#include <string.h>

#include "base/text.h"
#include "labels/stack_rules.h"

static struct stacks {
    uint64_t used_bytes;
    uint32_t n_stacks;
} *stacks; /* in LEDGER, under the book lock */

enum { BUCKETS_SHARE = 512 }; /* of the ledger: one part in so many */
static region_ref *buckets; /* 1 << lg_buckets of them, in LEDGER */
static unsigned lg_buckets;

bool stacks_open(void)
{
    lg_buckets = region_lg_buckets(BUCKETS_SHARE);
    stacks = region_fix(REGION_LEDGER, sizeof *stacks);
    buckets = region_fix(REGION_LEDGER, sizeof *buckets << lg_buckets);
    return stacks && buckets;
}

static region_ref *bucket_of(uint32_t hash)
{
    return &buckets[hash & ((1u << lg_buckets) - 1)];
}

static struct stack *find(const uint64_t *frames, unsigned n_frames, uint32_t hash)
{
    struct stack *stack = region_at(*bucket_of(hash));
    while (stack && !(stack->hash == hash && stack->n_frames == n_frames &&
                      memcmp(stack->frames, frames, n_frames * sizeof *frames) == 0))
        stack = region_at(stack->next_in_bucket);
    return stack;
}

static struct stack *insert(const uint64_t *frames, unsigned n_frames, uint32_t hash)
{
    uint16_t rules[RULE_KEYS_MAX];
    unsigned n_rules = stack_rules_find(frames, n_frames, rules);
    size_t size = sizeof(struct stack) + n_frames * sizeof *frames + n_rules * sizeof *rules;
    struct stack *stack = region_take(REGION_LEDGER, size);
    if (!stack)
        return NULL;
    stack->hash = hash;
    stack->n_frames = (uint16_t)n_frames;
    stack->n_rules = (uint16_t)n_rules;
    memcpy(stack->frames, frames, n_frames * sizeof *frames);
    memcpy(stack->frames + n_frames, rules, n_rules * sizeof *rules);
    stack->next_in_bucket = *bucket_of(hash);
    *bucket_of(hash) = region_ref_of(stack);
    stacks->used_bytes += size;
    stacks->n_stacks++;
    return stack;
}

static struct stack *get(const uint64_t *frames, unsigned n_frames, uint64_t limit_bytes)
{
    uint32_t hash = (uint32_t)hash_bytes(frames, n_frames * sizeof *frames);
    struct stack *stack = find(frames, n_frames, hash);
    if (stack || stacks->used_bytes >= limit_bytes)
        return stack;
    return insert(frames, n_frames, hash);
}

struct stack *stacks_find(const uint64_t *frames, unsigned n_frames)
{
    return get(frames, n_frames, 0);
}

struct stack *stacks_other(void)
{
    static const uint64_t other_stacks[] = {FRAME_OTHER_STACKS};
    return get(other_stacks, 1, UINT64_MAX);
}

struct stack *stacks_get(const uint64_t *frames, unsigned n_frames)
{
    struct stack *stack = get(frames, n_frames, region_size_bytes(REGION_LEDGER) / 2);
    return stack ? stack : stacks_other();
}

uint64_t stacks_size_class(uint64_t size)
{
    if (size < 16)
        return size;
    unsigned lg_step = 60 - (unsigned)__builtin_clzll(size); /* 8 steps an octave */
    uint64_t low = size >> lg_step << lg_step;
    return low + ((UINT64_C(1) << lg_step) - 1) / 2;
}

uint64_t stacks_size_label(struct stack *stack, uint64_t size)
{
    for (unsigned i = 0; i < stack->n_exact_sizes; i++)
        if (stack->exact_sizes[i] == size)
            return size;
    if (stack->n_exact_sizes == EXACT_SIZES)
        return stacks_size_class(size);
    stack->exact_sizes[stack->n_exact_sizes++] = size;
    return size;
}

uint32_t stacks_count(void)
{
    return stacks->n_stacks;
}
