/* SPDX-License-Identifier: MIT
 * The doors of operator new and delete, under their mangled names.
 *
 * All variants are called with three integer arguments, as many as the longest takes: on x86-64 the
 * registers of the missing ones are simply passed on. new(size [, alignment] [, nothrow]) and
 * delete(p [, size] [, alignment] [, nothrow]).
 */
#include "interpose/new.h"

#include <stdint.h>

#include "base/attributes.h"
#include "interpose/new_scope.h"
#include "interpose/next.h"
#include "interpose/slow.h"
#include "sample/sample.h"

enum variant {
    NEW,
    NEW_ARRAY,
    NEW_NOTHROW,
    NEW_ARRAY_NOTHROW,
    NEW_ALIGNED,
    NEW_ARRAY_ALIGNED,
    NEW_ALIGNED_NOTHROW,
    NEW_ARRAY_ALIGNED_NOTHROW,
    DELETE,
    DELETE_ARRAY,
    DELETE_SIZED,
    DELETE_ARRAY_SIZED,
    DELETE_NOTHROW,
    DELETE_ARRAY_NOTHROW,
    DELETE_ALIGNED,
    DELETE_ARRAY_ALIGNED,
    DELETE_SIZED_ALIGNED,
    DELETE_ARRAY_SIZED_ALIGNED,
    DELETE_ALIGNED_NOTHROW,
    DELETE_ARRAY_ALIGNED_NOTHROW,
    VARIANTS,
    NO_VARIANT = VARIANTS,
};

static const struct {
    const char *symbol;
    enum variant aligned; /* of a new: its form with an alignment */
    enum variant unsized; /* of a sized delete: its form without the size */
    bool is_aligned;      /* of a new */
} traits[VARIANTS] = {
    [NEW] = {"_Znwm", NEW_ALIGNED, NO_VARIANT},
    [NEW_ARRAY] = {"_Znam", NEW_ARRAY_ALIGNED, NO_VARIANT},
    [NEW_NOTHROW] = {"_ZnwmRKSt9nothrow_t", NEW_ALIGNED_NOTHROW, NO_VARIANT},
    [NEW_ARRAY_NOTHROW] = {"_ZnamRKSt9nothrow_t", NEW_ARRAY_ALIGNED_NOTHROW, NO_VARIANT},
    [NEW_ALIGNED] = {"_ZnwmSt11align_val_t", NO_VARIANT, NO_VARIANT, true},
    [NEW_ARRAY_ALIGNED] = {"_ZnamSt11align_val_t", NO_VARIANT, NO_VARIANT, true},
    [NEW_ALIGNED_NOTHROW] = {"_ZnwmSt11align_val_tRKSt9nothrow_t", NO_VARIANT, NO_VARIANT, true},
    [NEW_ARRAY_ALIGNED_NOTHROW] = {"_ZnamSt11align_val_tRKSt9nothrow_t", NO_VARIANT, NO_VARIANT, true},
    [DELETE] = {"_ZdlPv", NO_VARIANT, NO_VARIANT},
    [DELETE_ARRAY] = {"_ZdaPv", NO_VARIANT, NO_VARIANT},
    [DELETE_SIZED] = {"_ZdlPvm", NO_VARIANT, DELETE},
    [DELETE_ARRAY_SIZED] = {"_ZdaPvm", NO_VARIANT, DELETE_ARRAY},
    [DELETE_NOTHROW] = {"_ZdlPvRKSt9nothrow_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ARRAY_NOTHROW] = {"_ZdaPvRKSt9nothrow_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ALIGNED] = {"_ZdlPvSt11align_val_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ARRAY_ALIGNED] = {"_ZdaPvSt11align_val_t", NO_VARIANT, NO_VARIANT},
    [DELETE_SIZED_ALIGNED] = {"_ZdlPvmSt11align_val_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ARRAY_SIZED_ALIGNED] = {"_ZdaPvmSt11align_val_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ALIGNED_NOTHROW] = {"_ZdlPvSt11align_val_tRKSt9nothrow_t", NO_VARIANT, NO_VARIANT},
    [DELETE_ARRAY_ALIGNED_NOTHROW] = {"_ZdaPvSt11align_val_tRKSt9nothrow_t", NO_VARIANT,
                                      NO_VARIANT},
};

enum mode { UNRESOLVED, PASS_ON, COUNT };

static struct {
    uint8_t mode; /* enum mode; atomic, written last */
    new_function *call;
} behind[VARIANTS];

typedef void delete_function(void *p, uintptr_t a, uintptr_t b);

static delete_function *as_delete(enum variant variant)
{
    return (delete_function *)(uintptr_t)behind[variant].call;
}

static bool resolve(enum variant variant)
{
    void *found = next_symbol(traits[variant].symbol);
    if (!found)
        return false;
    bool is_allocators = next_provider(found) == next_provider((void *)(uintptr_t)next.malloc);
    if (!is_allocators && variant < DELETE)
        new_scope_leave_out(found);
    behind[variant].call = (new_function *)(uintptr_t)found;
    /* Release pairs with the acquire in `mode_of`: the function is there when the mode says so. */
    __atomic_store_n(&behind[variant].mode, is_allocators ? COUNT : PASS_ON, __ATOMIC_RELEASE);
    return true;
}

void new_open(void)
{
    /* In a C program there is none, and one miss tells. */
    if (!resolve(NEW))
        return;
    for (enum variant variant = NEW + 1; variant < VARIANTS; variant++)
        resolve(variant);
}

static inline enum mode mode_of(enum variant variant)
{
    return __atomic_load_n(&behind[variant].mode, __ATOMIC_ACQUIRE);
}

static new_function *aligned_form(enum variant variant)
{
    enum variant aligned = traits[variant].aligned;
    return aligned != NO_VARIANT && mode_of(aligned) == COUNT && mode_of(DELETE) == COUNT
               ? behind[aligned].call
               : NULL;
}

_Static_assert((int)VARIANTS == (int)NEW_SCOPE_SYMBOLS, "one each");

/* Nobody behind us has it, or a library's constructor was faster than ours: each call goes where its
 * caller's scope says. Whatever that is, it gets its memory from malloc and is counted there. */
static COLD void *new_of_caller(size_t size, uintptr_t a, uintptr_t b, enum variant variant,
                                const void *caller)
{
    next_resolve();
    void *symbol = new_scope_find(caller, variant, traits[variant].symbol);
    new_function *found = (new_function *)(uintptr_t)symbol;
    return found ? found(size, a, b) : next.malloc(size);
}

static COLD void delete_of_caller(void *p, uintptr_t a, uintptr_t b, enum variant variant,
                                  const void *caller)
{
    next_resolve();
    void *symbol = new_scope_find(caller, variant, traits[variant].symbol);
    delete_function *found = (delete_function *)(uintptr_t)symbol;
    if (found)
        found(p, a, b);
    else
        next.free(p);
}

static inline __attribute__((always_inline)) void *allocate(enum variant variant, size_t size,
                                                           uintptr_t a, uintptr_t b)
{
    enum mode mode = mode_of(variant);
    if (mode == PASS_ON && traits[variant].is_aligned)
        thread_self.asked_bytes = size;
    if (mode == PASS_ON || (mode == COUNT && sample_passes(size)))
        return behind[variant].call(size, a, b);
    if (mode == COUNT)
        return slow_new(size, a, b, behind[variant].call, aligned_form(variant));
    return new_of_caller(size, a, b, variant, __builtin_return_address(0));
}

/* The size goes on only where it can't mislead: see filter_is_inherited. */
static void delete_unsized(enum variant variant, void *p, uintptr_t a, uintptr_t b)
{
    enum variant unsized = traits[variant].unsized;
    if (!slow_release(p))
        return;
    as_delete(unsized != NO_VARIANT && mode_of(unsized) == COUNT ? unsized : variant)(p, a, b);
}

static inline __attribute__((always_inline)) void release(enum variant variant, void *p,
                                                         uintptr_t a, uintptr_t b)
{
    enum mode mode = mode_of(variant);
    bool has_hint = traits[variant].unsized != NO_VARIANT;
    if (mode == PASS_ON ||
        (mode == COUNT && slow_is_needless(p) && !(has_hint && filter_is_inherited(p))))
        as_delete(variant)(p, a, b);
    else if (mode == COUNT)
        delete_unsized(variant, p, a, b);
    else
        delete_of_caller(p, a, b, variant, __builtin_return_address(0));
}

#define NEW_DOOR(symbol, variant)                                 \
    EXPORT void *symbol(size_t size, uintptr_t a, uintptr_t b);   \
    void *symbol(size_t size, uintptr_t a, uintptr_t b)           \
    {                                                             \
        return allocate(variant, size, a, b);              \
    }

#define DELETE_DOOR(symbol, variant)                              \
    EXPORT void symbol(void *p, uintptr_t a, uintptr_t b);        \
    void symbol(void *p, uintptr_t a, uintptr_t b)                \
    {                                                             \
        release(variant, p, a, b);                        \
    }

NEW_DOOR(_Znwm, NEW)
NEW_DOOR(_Znam, NEW_ARRAY)
NEW_DOOR(_ZnwmRKSt9nothrow_t, NEW_NOTHROW)
NEW_DOOR(_ZnamRKSt9nothrow_t, NEW_ARRAY_NOTHROW)
NEW_DOOR(_ZnwmSt11align_val_t, NEW_ALIGNED)
NEW_DOOR(_ZnamSt11align_val_t, NEW_ARRAY_ALIGNED)
NEW_DOOR(_ZnwmSt11align_val_tRKSt9nothrow_t, NEW_ALIGNED_NOTHROW)
NEW_DOOR(_ZnamSt11align_val_tRKSt9nothrow_t, NEW_ARRAY_ALIGNED_NOTHROW)
DELETE_DOOR(_ZdlPv, DELETE)
DELETE_DOOR(_ZdaPv, DELETE_ARRAY)
DELETE_DOOR(_ZdlPvm, DELETE_SIZED)
DELETE_DOOR(_ZdaPvm, DELETE_ARRAY_SIZED)
DELETE_DOOR(_ZdlPvRKSt9nothrow_t, DELETE_NOTHROW)
DELETE_DOOR(_ZdaPvRKSt9nothrow_t, DELETE_ARRAY_NOTHROW)
DELETE_DOOR(_ZdlPvSt11align_val_t, DELETE_ALIGNED)
DELETE_DOOR(_ZdaPvSt11align_val_t, DELETE_ARRAY_ALIGNED)
DELETE_DOOR(_ZdlPvmSt11align_val_t, DELETE_SIZED_ALIGNED)
DELETE_DOOR(_ZdaPvmSt11align_val_t, DELETE_ARRAY_SIZED_ALIGNED)
DELETE_DOOR(_ZdlPvSt11align_val_tRKSt9nothrow_t, DELETE_ALIGNED_NOTHROW)
DELETE_DOOR(_ZdaPvSt11align_val_tRKSt9nothrow_t, DELETE_ARRAY_ALIGNED_NOTHROW)
