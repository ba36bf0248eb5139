/* SPDX-License-Identifier: MIT
 * Linked -static: a preload library can't reach it, and nothing changes for it. */
#include "labelprof.h"
#include "common.h"

int main(void)
{
    CHECK(labelprof_set("k", "v") == -1);
    keep(malloc(1000));
    puts("static");
    return 0;
}
