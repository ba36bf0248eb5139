/* SPDX-License-Identifier: MIT
 * Tasks carry their labels through a pool: 4 workers, 400 tasks of 8 tenants; each task leaks one
 * object of 100 B in run_task under the tenant of whoever submitted it. */
#include <pthread.h>
#include "labelprof.h"
#include "common.h"

enum { N_WORKERS = 4, N_TASKS = 400, N_TENANTS = 8 };

static labelprof_labels *tasks[N_TASKS];
static int n_run;

static NOINLINE void run_task(void)
{
    keep(malloc(100));
}

static NOINLINE void between_tasks(void)
{
    keep(malloc(50));
}

static void *work(void *argument)
{
    for (;;) {
        int i = __atomic_fetch_add(&n_run, 1, __ATOMIC_ACQ_REL);
        if (i >= N_TASKS)
            return argument;
        CHECK(labelprof_attach(tasks[i]) == 0);
        labelprof_release(tasks[i]);
        run_task();
        CHECK(labelprof_attach(NULL) == 0);
        between_tasks();
    }
}

int main(void)
{
    pthread_t workers[N_WORKERS];
    for (int i = 0; i < N_TASKS; i++) {
        char tenant[16];
        snprintf(tenant, sizeof tenant, "tenant-%d", i % N_TENANTS);
        labelprof_set("tenant", tenant);
        tasks[i] = labelprof_capture();
        CHECK(tasks[i]);
    }
    labelprof_unset("tenant");
    for (int i = 0; i < N_WORKERS; i++)
        CHECK(!pthread_create(&workers[i], NULL, work, NULL));
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
