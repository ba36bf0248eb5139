/* SPDX-License-Identifier: MIT */
#include "unwind/walk.h"

#include <stddef.h>
#include <ucontext.h>

#include "base/attributes.h"
#include "base/thread.h"
#include "unwind/call.h"
#include "unwind/compile.h"
#include "unwind/find.h"
#include "unwind/modules.h"
#include "unwind/rules.h"
#include "unwind/stack.h"

/* Sanitizers keep red zones on the stack; a walk may read what it likes of it. */
#define READS_ANY_STACK __attribute__((no_sanitize("address", "thread")))

enum {
    GUESSED_FRAME_MAX_BYTES = 1 << 18, /* beyond it BP points into another stack */
    LEFT_OUT_MAX = 64, /* own frames a walk passes at most, so that a loop of them ends */
};

/* User code lies in [first page's end, 2^47). */
#define CODE_LOW ((uintptr_t)PAGE_BYTES)
#define NO_CALLER UINTPTR_MAX /* the address of the call that returns to 0 */
#define CODE_LIMIT ((uintptr_t)1 << 47)

struct walk {
    struct unwind_regs regs;
    uintptr_t address; /* what stands for the frame: in the call, or the interrupted instruction */
    uint64_t generation_bits;
    struct stack stack;
    struct stack_bounds bounds;
};

enum step { STEP_DONE, STEP_OUTERMOST, STEP_BEYOND_OUTERMOST, STEP_LOST };

static struct {
    uintptr_t start, bytes;
} own_text; /* written by unwind_leave_out before the first walk */

static READS_ANY_STACK inline uintptr_t word_at(uintptr_t address)
{
    return *(const uintptr_t *)address;
}

static inline bool can_be_code(uintptr_t address)
{
    return address - CODE_LOW < CODE_LIMIT - CODE_LOW;
}

static uintptr_t stack_left_bytes(const struct walk *walk)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool is_known = here >= walk->bounds.low && here < walk->bounds.high;
    return is_known ? here - walk->bounds.low : 0;
}

static inline uint64_t rule_at(const struct walk *walk, uintptr_t address)
{
    uint64_t rule, key = walk->generation_bits | address;
    if (likely(rules_find(key, &rule)))
        return rule;
    return rules_add(key, stack_left_bytes(walk));
}

/* Where a plain rule finds the caller's state; bp_slot is the return address's if BP isn't saved.
 */
struct slots {
    uintptr_t cfa, ra_slot, bp_slot;
    bool is_bp_saved;
};

/* No branch here depends on the frame. */
static inline struct slots slots_of(const struct unwind_regs *regs, uint64_t rule)
{
    uintptr_t base = rule & RULE_BASE_IS_BP ? regs->bp : regs->sp;
    uintptr_t cfa = base + (uintptr_t)rule_cfa_offset(rule);
    bool is_bp_saved = rule & RULE_BP_IS_SAVED;
    uintptr_t bp_slot = cfa + (is_bp_saved ? (uintptr_t)rule_bp_slot(rule) : (uintptr_t)-8);
    return (struct slots){cfa, cfa - 8, bp_slot, is_bp_saved};
}

static READS_ANY_STACK inline void go_to(struct unwind_regs *regs, const struct slots *slots)
{
    uintptr_t word = word_at(slots->bp_slot);
    regs->bp = slots->is_bp_saved ? word : regs->bp;
    regs->pc = word_at(slots->ra_slot);
    regs->sp = slots->cfa;
}

/* The step of nearly all frames, all of it in registers. */
static inline bool step_quickly(struct unwind_regs *regs, const struct stack *stack, uint64_t rule)
{
    struct slots slots = slots_of(regs, rule);
    if (unlikely(slots.cfa <= regs->sp || !stack_holds(stack, slots.ra_slot) ||
                 !stack_holds(stack, slots.bp_slot)))
        return false;
    go_to(regs, &slots);
    return true;
}

/* The same where pages must be probed. */
static bool step_plain(struct walk *walk, uint64_t rule)
{
    struct slots slots = slots_of(&walk->regs, rule);
    if (slots.cfa <= walk->regs.sp || !stack_has(&walk->stack, slots.bp_slot) ||
        !stack_has(&walk->stack, slots.ra_slot))
        return false;
    go_to(&walk->regs, &slots);
    walk->address = walk->regs.pc - 1;
    return true;
}

static READS_ANY_STACK bool step_realigned(struct walk *walk, uint64_t rule)
{
    uintptr_t bp = walk->regs.bp;
    uintptr_t cfa_slot = bp + (uintptr_t)rule_cfa_offset(rule);
    if (!stack_has(&walk->stack, cfa_slot))
        return false;
    uintptr_t cfa = word_at(cfa_slot);
    if (cfa <= walk->regs.sp || !stack_has(&walk->stack, bp) || !stack_has(&walk->stack, cfa - 8))
        return false;
    walk->regs = (struct unwind_regs){word_at(cfa - 8), cfa, word_at(bp)};
    walk->address = walk->regs.pc - 1;
    return true;
}

static READS_ANY_STACK bool read_context(struct walk *walk, size_t offset, uintptr_t *ret_word)
{
    uintptr_t slot = walk->regs.sp + offset;
    if (!stack_has(&walk->stack, slot))
        return false;
    *ret_word = word_at(slot);
    return true;
}

#define CONTEXT_REG(reg) (offsetof(ucontext_t, uc_mcontext.gregs) + (reg) * sizeof(greg_t))

/* The interrupted frame may lie on another stack, above or below this one. */
static bool step_signal(struct walk *walk)
{
    struct unwind_regs regs;
    if (!read_context(walk, CONTEXT_REG(REG_RIP), &regs.pc) ||
        !read_context(walk, CONTEXT_REG(REG_RSP), &regs.sp) ||
        !read_context(walk, CONTEXT_REG(REG_RBP), &regs.bp))
        return false;
    thread_self.is_in_handler = true;
    if (regs.sp <= walk->regs.sp || !stack_holds(&walk->stack, regs.sp & ~(uintptr_t)7))
        stack_enter(&walk->stack, regs.sp, walk->bounds);
    walk->regs = regs;
    walk->address = regs.pc;
    return true;
}

static bool is_plausible_caller(const struct walk *walk, uintptr_t return_address,
                                uint64_t rule_of_guesser)
{
    if (return_address == 0)
        return true; /* the end mark of a chain of frame pointers */
    if (!can_be_code(return_address - 1))
        return false;
    uint64_t rule = rule_at(walk, return_address - 1);
    if (rule_kind(rule) == RULE_NOT_CODE)
        return false;
    if (rule & RULE_MODULE_MASK)
        return call_ends_at(return_address);
    return rule_kind(rule) == RULE_GUESS && !(rule_of_guesser & RULE_MODULE_MASK);
}

/* JIT code, and assembly nobody described. If BP is no frame pointer, what lies there is refused
 * unless it happens to be a return address. */
static READS_ANY_STACK bool step_guess(struct walk *walk, uint64_t rule)
{
    uintptr_t bp = walk->regs.bp;
    if (bp - walk->regs.sp > GUESSED_FRAME_MAX_BYTES || !stack_has(&walk->stack, bp) ||
        !stack_has(&walk->stack, bp + 8))
        return false;
    struct unwind_regs caller = {word_at(bp + 8), bp + 16, word_at(bp)};
    if (!is_plausible_caller(walk, caller.pc, rule))
        return false;
    walk->regs = caller;
    walk->address = caller.pc - 1;
    return true;
}

/* The bottom of a coroutine: a return address that no call made. (makecontext's is the first byte
 * of a function, so it even belongs to nothing.) */
static bool is_planted(const struct walk *walk, uint64_t rule)
{
    return rule_kind(rule) == RULE_NOT_CODE && (rule & RULE_MODULE_MASK) &&
           walk->address != walk->regs.pc;
}

/* The registers come one by one: handed over as a struct, gcc keeps them in vector registers all
 * along the quick path. */
static COLD enum step step_slowly(struct walk *walk, uint64_t rule, uintptr_t address, uintptr_t pc,
                                  uintptr_t sp, uintptr_t bp)
{
    bool is_done = false;
    walk->regs = (struct unwind_regs){pc, sp, bp};
    walk->address = address;
    switch (rule_kind(rule)) {
    case RULE_PLAIN:
        is_done = step_plain(walk, rule);
        break;
    case RULE_REALIGNED:
        is_done = step_realigned(walk, rule);
        break;
    case RULE_SIGNAL:
        is_done = step_signal(walk);
        break;
    case RULE_GUESS:
    case RULE_NOT_CODE: /* a callee with CFI says it is code all the same */
        if (is_planted(walk, rule))
            return STEP_BEYOND_OUTERMOST;
        is_done = step_guess(walk, rule);
        break;
    case RULE_OUTERMOST:
        return STEP_OUTERMOST;
    default:
        break;
    }
    return is_done ? STEP_DONE : STEP_LOST;
}

/* The kernel makes a signal frame look like a call at the restorer's first byte, not before it. */
static inline uint64_t frame_of(uint64_t rule, uintptr_t address)
{
    uintptr_t shown = unlikely(rule_kind(rule) == RULE_SIGNAL) ? address + 1 : address;
    return (rule & RULE_MODULE_MASK) | shown;
}

static unsigned end_truncated(uint64_t *frames, unsigned n, unsigned max)
{
    if (max == 0)
        return 0;
    if (n == max)
        n--;
    frames[n++] = FRAME_TRUNCATED;
    return n;
}

static COLD unsigned end_outside_code(uintptr_t address, uint64_t *frames, unsigned n, unsigned max)
{
    return address == NO_CALLER && n ? n : end_truncated(frames, n, max);
}

/* `walk` is current around step_slowly only; in between its values live in locals. */
static unsigned follow(struct walk *walk, uint64_t *frames, unsigned max)
{
    struct unwind_regs regs = walk->regs;
    struct stack stack = walk->stack;
    uintptr_t address = walk->address;
    unsigned n = 0;
    for (uint64_t n_steps = 0; n_steps < (uint64_t)max + LEFT_OUT_MAX; n_steps++) {
        if (unlikely(!can_be_code(address)))
            return end_outside_code(address, frames, n, max);
        uint64_t rule = rule_at(walk, address);
        if (unlikely(n == max))
            break;
        frames[n] = frame_of(rule, address);
        n += address - own_text.start >= own_text.bytes;
        if (likely(rule_is_plain(rule) && step_quickly(&regs, &stack, rule))) {
            address = regs.pc - 1;
            continue;
        }
        enum step step = step_slowly(walk, rule, address, regs.pc, regs.sp, regs.bp);
        if (step == STEP_BEYOND_OUTERMOST && n > 1)
            return n - 1;
        if (step != STEP_DONE)
            return step == STEP_OUTERMOST && n ? n : end_truncated(frames, n, max);
        regs = walk->regs;
        stack = walk->stack;
        address = walk->address;
    }
    return end_truncated(frames, n, max);
}

unsigned unwind_walk(struct unwind_regs regs, struct stack_bounds bounds, uint64_t *frames,
                     unsigned max)
{
    struct walk walk = {
        .regs = regs,
        .address = regs.pc - 1,
        .generation_bits = rules_generation_bits(),
        .bounds = bounds,
    };
    thread_self.is_in_handler = false;
    stack_enter(&walk.stack, regs.sp, bounds);
    return follow(&walk, frames, max);
}

bool unwind_open(void)
{
    return modules_open() && rules_open();
}

void unwind_leave_out(uintptr_t start, uintptr_t limit)
{
    own_text.start = start;
    own_text.bytes = limit - start;
}

void unwind_after_unload(void)
{
    modules_mark_unloaded();
}

void unwind_load_compiler_if_wanted(void)
{
    if (compile_load_if_wanted())
        modules_new_generation();
}

enum unwind_compiler unwind_compiler_state(void)
{
    return compile_state();
}
