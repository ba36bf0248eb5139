/* SPDX-License-Identifier: MIT
 * Compiler attributes and the few macros everybody uses. Nothing here has behaviour. */
#ifndef LABELPROF_BASE_ATTRIBUTES_H
#define LABELPROF_BASE_ATTRIBUTES_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A symbol the program may bind to. Everything else is hidden (-fvisibility=hidden, exports.map). */
#define EXPORT __attribute__((visibility("default")))

#define COLD __attribute__((cold, noinline))
#define ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define PAGE_BYTES 4096u

static inline unsigned long round_up(unsigned long n, unsigned long to_power_of_two)
{
    return (n + to_power_of_two - 1) & ~(to_power_of_two - 1);
}

#endif
