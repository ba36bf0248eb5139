/* SPDX-License-Identifier: MIT
 * calloc: small blocks are zero even where others have been, a large one stays untouched, a
 * product that overflows is refused. Live: small 100 x 300 B, large 4 x 256 MiB. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "common.h"

static long resident_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file);
    while (fgets(line, sizeof line, file))
        sscanf(line, "VmRSS: %ld", &kib);
    fclose(file);
    return kib;
}

static NOINLINE void small(void)
{
    void *dirty = malloc(300);
    CHECK(dirty);
    memset(dirty, 0xAA, 300);
    free(dirty);
    unsigned char *object = calloc(10, 30);
    CHECK(object);
    for (int i = 0; i < 300; i++)
        CHECK(!object[i]);
    memset(object, 0xAA, 300);
}

static NOINLINE void large(void)
{
    unsigned char *object = calloc(256, 1 << 20);
    CHECK(object && !object[0] && !object[100 << 20]);
}

int main(void)
{
    volatile size_t huge = SIZE_MAX / 2;
    for (int i = 0; i < 100; i++)
        small();
    long before = resident_kib();
    for (int i = 0; i < 4; i++)
        large();
    CHECK(resident_kib() - before < 32 * 1024);
    errno = 0;
    CHECK(!calloc(huge, 3) && errno == ENOMEM);
    return 0;
}
