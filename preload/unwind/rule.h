/* SPDX-License-Identifier: MIT
 * How to get from a frame to its caller, in one word, so that it is stored and read atomically.
 *
 *   63      48 47                  24 23          8   7..2      1        0
 *  +----------+----------------------+-------------+--------+--------+--------+
 *  | module   | CFA offset / 8       | BP slot / 8 |  kind  | BP is  | base   |
 *  | of frame | from base (signed)   | from CFA (s)|        | saved  | is BP  |
 *  +----------+----------------------+-------------+--------+--------+--------+
 *
 * x86-64: CFA = base + offset; return address = *(CFA - 8); the caller's SP = CFA; the caller's
 * BP = *(CFA + slot) if saved, else unchanged. All offsets are multiples of 8 or there is no rule.
 * Pure: no state, no failure.
 */
#ifndef LABELPROF_UNWIND_RULE_H
#define LABELPROF_UNWIND_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define RULE_BASE_IS_BP UINT64_C(1)
#define RULE_BP_IS_SAVED UINT64_C(2)
#define RULE_KIND_MASK UINT64_C(0xfc)
#define RULE_MODULE_MASK (UINT64_C(0xffff) << 48)

enum rule_kind {
    RULE_PLAIN = 0 << 2,     /* as above */
    RULE_REALIGNED = 1 << 2, /* CFA = *(BP + offset), caller's BP = *BP (gcc realigned the stack) */
    RULE_SIGNAL = 2 << 2,    /* a ucontext_t lies at SP: the kernel interrupted the caller */
    RULE_OUTERMOST = 3 << 2, /* there is no caller */
    RULE_GUESS = 4 << 2,     /* no CFI: BP may be a frame pointer */
    RULE_NOT_CODE = 5 << 2,  /* as GUESS, and no call instruction precedes this address */
    RULE_NONE = 6 << 2,      /* there is CFI, and it has no such simple form */
};

static inline uint64_t rule_kind(uint64_t rule)
{
    return rule & RULE_KIND_MASK;
}

static inline bool rule_is_plain(uint64_t rule)
{
    return rule_kind(rule) == RULE_PLAIN;
}

static inline intptr_t rule_cfa_offset(uint64_t rule)
{
    return ((int64_t)(rule << 16) >> 40) * 8;
}

static inline intptr_t rule_bp_slot(uint64_t rule)
{
    return (intptr_t)(int16_t)(rule >> 8) * 8;
}

/* RULE_NONE if an offset doesn't fit. */
static inline uint64_t rule_of(uint64_t kind_and_flags, int64_t cfa_offset, int64_t bp_slot)
{
    bool fits = cfa_offset % 8 == 0 && bp_slot % 8 == 0 && cfa_offset >= -(INT64_C(1) << 26) &&
                cfa_offset < INT64_C(1) << 26 && bp_slot >= -(INT64_C(1) << 18) &&
                bp_slot < INT64_C(1) << 18;
    if (!fits)
        return RULE_NONE;
    return kind_and_flags | ((uint64_t)(cfa_offset / 8) & 0xffffff) << 24 |
           ((uint64_t)(bp_slot / 8) & 0xffff) << 8;
}

#endif
