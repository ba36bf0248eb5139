/* SPDX-License-Identifier: MIT
 * Sets the labels of its arguments (key=value, or key:=number), leaks 10 x 100 B in leak_here. */
#include <string.h>
#include "labelprof.h"
#include "common.h"

static NOINLINE void leak_here(void)
{
    for (int i = 0; i < 10; i++)
        keep(malloc(100));
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *end = strchr(argv[i], '=');
        CHECK(end && end > argv[i]);
        if (end[-1] == ':') {
            end[-1] = 0;
            CHECK(labelprof_set_num(argv[i], atol(end + 1), NULL) == 0);
        } else {
            *end = 0;
            CHECK(labelprof_set(argv[i], end + 1) == 0);
        }
    }
    leak_here();
    return 0;
}
