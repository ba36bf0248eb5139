/* SPDX-License-Identifier: MIT
 * The first of two plugins of one shape that take each other's place. */
#include <stdlib.h>

__attribute__((noinline, noclone)) static void *alpha_allocates(size_t size)
{
    void *object = malloc(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

__attribute__((noinline, noclone)) static void *alpha_middle(size_t size)
{
    void *object = alpha_allocates(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

void *plugin_entry(size_t size)
{
    void *object = alpha_middle(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}
