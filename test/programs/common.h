/* SPDX-License-Identifier: MIT
 * What the victims share: functions that keep their names on the stack, and a loud end. */
#ifndef LABELPROF_TEST_PROGRAMS_COMMON_H
#define LABELPROF_TEST_PROGRAMS_COMMON_H

#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline, noclone))

/* The compiler must believe that the pointer is used. */
static inline void keep(void *object)
{
    __asm__ volatile("" : : "r"(object) : "memory");
}

/* Not assert: it must also hold where NDEBUG is set, and say where. */
#define CHECK(condition) \
    ((condition) ? (void)0 \
                 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(99)))

#endif
