/* SPDX-License-Identifier: MIT
 * A million request ids through one thread, a thousand requests alive at a time.
 * Arguments: requests, alive. Prints peak resident KiB at the end. */
#include <string.h>
#include <sys/resource.h>
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
    long n_requests = argc > 1 ? atol(argv[1]) : 1000000;
    long n_alive = argc > 2 ? atol(argv[2]) : 1000;
    void **alive = calloc(n_alive, sizeof(void *));
    struct rusage usage;
    for (long i = 0; i < n_requests; i++) {
        char id[32];
        snprintf(id, sizeof id, "req-%ld", i);
        labelprof_set("request", id);
        free(alive[i % n_alive]);
        alive[i % n_alive] = serve_request(100);
    }
    labelprof_unset("request");
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_maxrss);
    return 0;
}
