/* SPDX-License-Identifier: MIT
 * The second plugin: at the first one's addresses other code, with other frame sizes. */
#include <stdlib.h>

__attribute__((noinline, noclone)) static void *beta_allocates(size_t size)
{
    volatile char room[200];
    room[size % 200] = 1;
    void *object = malloc(size + room[size % 200] - 1);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

__attribute__((noinline, noclone)) static void *beta_outer(size_t size)
{
    volatile char room[1000];
    room[size % 1000] = 1;
    void *object = beta_allocates(size + room[size % 1000] - 1);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

void *plugin_entry(size_t size)
{
    void *object = beta_outer(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}
