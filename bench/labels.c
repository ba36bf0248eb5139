/* SPDX-License-Identifier: MIT
 * What setting labels costs, served by rounds: labels WORKLOAD [N_OTHER_LABELS].
 */
#include <string.h>

#include "labelprof.h"
#include "rounds.h"

static const char *volatile value = "acme"; /* not known when compiling: as in a real server */

static void set_unset(long n)
{
    while (n--) {
        labelprof_set("tenant", value);
        labelprof_unset("tenant");
    }
}

static void set(long n)
{
    while (n--)
        labelprof_set("tenant", value);
}

static void set_num_unset(long n)
{
    while (n--) {
        labelprof_set_num("request", n, NULL);
        labelprof_unset("request");
    }
}

static void scope(long n)
{
    while (n--) {
        LABELPROF_SCOPE("tenant", value);
        __asm__ volatile("" : : : "memory");
    }
}

static void carry(long n)
{
    while (n--) {
        labelprof_labels *labels = labelprof_capture();
        labelprof_attach(labels);
        labelprof_release(labels);
    }
}

static const struct {
    const char *name;
    workload_function *work;
} workloads[] = {
    {"set_unset", set_unset}, {"set", set},     {"set_num_unset", set_num_unset},
    {"scope", scope},         {"carry", carry},
};

int main(int argc, char **argv)
{
    char key[16];
    long n_others = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    for (long i = 0; i < n_others; i++) {
        snprintf(key, sizeof key, "other%ld", i);
        labelprof_set(key, "value");
    }
    for (size_t i = 0; argc > 1 && i < sizeof workloads / sizeof workloads[0]; i++)
        if (strcmp(workloads[i].name, argv[1]) == 0)
            return serve_rounds(workloads[i].work, 1);
    return 2;
}
