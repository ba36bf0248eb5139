/* SPDX-License-Identifier: MIT
 * Objects made under owner=maker are freed under owner=freer: they keep their birth's labels.
 * 1000 of 100 B, 900 freed by the other thread. */
#include <pthread.h>
#include "labelprof.h"
#include "common.h"

enum { N = 1000, N_FREED = 900 };
static void *objects[N];

static NOINLINE void *make_one(void)
{
    void *object = malloc(100);
    keep(object);
    return object;
}

static void *free_most(void *argument)
{
    labelprof_set("owner", "freer");
    for (int i = 0; i < N_FREED; i++)
        free(objects[i]);
    return argument;
}

int main(void)
{
    pthread_t thread;
    labelprof_set("owner", "maker");
    for (int i = 0; i < N; i++)
        objects[i] = make_one();
    CHECK(!pthread_create(&thread, NULL, free_most, NULL));
    pthread_join(thread, NULL);
    return 0;
}
