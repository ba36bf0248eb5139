/* SPDX-License-Identifier: MIT
 * Objects of size 0 are objects: 50 live from malloc, 30 from calloc, 20 freed. free(NULL) is
 * nothing, and errno survives malloc and free. */
#include <errno.h>
#include "common.h"

static NOINLINE void *nothing(void)
{
    void *object = malloc(0);
    keep(object);
    return object;
}

static NOINLINE void *nothing_times_five(void)
{
    void *object = calloc(0, 5);
    keep(object);
    return object;
}

int main(void)
{
    errno = 1234;
    for (int i = 0; i < 70; i++) {
        void *object = nothing();
        CHECK(object);
        if (i % 7 >= 5)
            free(object);
    }
    for (int i = 0; i < 30; i++)
        CHECK(nothing_times_five());
    free(NULL);
    CHECK(errno == 1234);
    return 0;
}
