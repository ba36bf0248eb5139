/* SPDX-License-Identifier: MIT
 * A stack, from the registers of one frame: follow cached rules from callee to caller.
 *
 * Place: sample → walk → rules → (cfi | compile) → modules.
 * Threads: thread-safe, lock-free when every rule is cached. Signals: safe in a handler, on any
 * stack, also one whose thread is inside the profiler.
 * Allocation: none on the program's heap; no fds, no system calls on a stack of known bounds.
 * Failure: the stack ends early with FRAME_TRUNCATED as its last frame.
 */
#ifndef LABELPROF_UNWIND_WALK_H
#define LABELPROF_UNWIND_WALK_H

#include <stdbool.h>
#include <stdint.h>

/* A frame is one word: the address of the call (return address - 1) in the low 48 bits, and in
 * the high 16 the id of the module it lay in when the stack was taken (modules.h; 0: in none, e.g.
 * JIT code). A library unloaded and another mapped in its place give different frames. */
#define FRAME_ADDRESS_BITS 48
#define FRAME_ADDRESS(frame) ((frame) & ((UINT64_C(1) << FRAME_ADDRESS_BITS) - 1))
#define FRAME_MODULE(frame) ((uint32_t)((frame) >> FRAME_ADDRESS_BITS))
#define FRAME_OF(module, address) ((uint64_t)(module) << FRAME_ADDRESS_BITS | (address))

/* Pseudo frames: module 0 and an address no code can have. */
#define FRAME_TRUNCATED UINT64_C(1)

/* The state on return into a frame: pc is the return address, sp the CFA of its callee. */
struct unwind_regs {
    uintptr_t pc, sp, bp;
};

/* The thread's own stack; {0, 0} if unknown. Inside it memory is read without a check, elsewhere
 * (sigaltstack, coroutines) each page is probed first. */
struct stack_bounds {
    uintptr_t low, high;
};

/* Writes up to `max` frames, leaf first, and returns how many (≥ 1 for max ≥ 1). Frames whose
 * address lies inside this library are left out. When the walk can't go on, or `max` is reached,
 * before the outermost frame, the last frame is FRAME_TRUNCATED. */
unsigned unwind_walk(struct unwind_regs regs, struct stack_bounds bounds, uint64_t *frames,
                     unsigned max);

/* Like region_open (and after it): once, before the first walk. False: no memory, or a glibc
 * before 2.35, where code can't be found without a lock. */
bool unwind_open(void);

/* The text that counts as this library's. Once, before the first walk; until then nothing does. */
void unwind_leave_out(uintptr_t start, uintptr_t limit);

/* After a dlclose: if a module went, forget its rules and mark it unloaded. Not in a handler;
 * takes the loader's lock (dl_iterate_phdr), as the dlclose before it did. */
void unwind_after_unload(void);

/* Loads libunwind if a pc was met that the built-in evaluator has no rule for. dlopens, so only
 * where the program itself could (thread creation, the flusher). Cheap when there is nothing. */
void unwind_load_compiler_if_wanted(void);

/* MISSING: looked for and not found; stacks through such a pc stay truncated. */
enum unwind_compiler {
    UNWIND_COMPILER_UNWANTED,
    UNWIND_COMPILER_WANTED,
    UNWIND_COMPILER_LOADED,
    UNWIND_COMPILER_MISSING,
};
enum unwind_compiler unwind_compiler_state(void);

#endif
