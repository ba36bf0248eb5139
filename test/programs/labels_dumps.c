/* SPDX-License-Identifier: MIT
 * Dumps between rounds: each round is 1000 requests under 300 request labels, some seen before,
 * some heavy, one in ten objects kept alive. Argument: rounds. */
#include "labelprof.h"
#include "common.h"

static NOINLINE void *serve_request(size_t size)
{
    void *object = malloc(size);
    keep(object);
    return object;
}

int main(int argc, char **argv)
{
    int n_rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int round = 0; round < n_rounds; round++) {
        for (int i = 0; i < 1000; i++) {
            char id[32];
            snprintf(id, sizeof id, "req-%d", i % 3 ? round * 200 + i % 200 : i % 7);
            labelprof_set("request", id);
            void *object = serve_request(100 + i % 900);
            if (i % 10)
                free(object);
        }
        CHECK(!labelprof_dump("heap", NULL));
    }
    return 0;
}
