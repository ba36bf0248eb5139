/* SPDX-License-Identifier: MIT
 * Thread names as labels. Each function leaks 10 x 100 B in a thread of that name:
 *   in_main          thread_name = the program's (comm)
 *   in_renamed_main  main after pthread_setname_np(self): "captain"
 *   in_self_named    pthread_setname_np(self): "self-named"
 *   in_other_named   named by main with pthread_setname_np(other): "other-named"
 *   in_prctl_named   prctl(PR_SET_NAME): "prctl-named"
 *   in_std_started   made by thrd_create
 *   in_inheritor     its creator's name, "captain"
 * and the labels of creator are inherited: team=red for those started after labelprof_set. */
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <threads.h>
#include "labelprof.h"
#include "common.h"

#define LEAKS_IN(name)                  \
    static NOINLINE void name(void)     \
    {                                   \
        for (int i = 0; i < 10; i++)    \
            keep(malloc(100));          \
    }
LEAKS_IN(in_main)
LEAKS_IN(in_renamed_main)
LEAKS_IN(in_self_named)
LEAKS_IN(in_other_named)
LEAKS_IN(in_prctl_named)
LEAKS_IN(in_std_started)
LEAKS_IN(in_inheritor)

static pthread_barrier_t named;

static NOINLINE void *self_named_start(void *argument)
{
    CHECK(!pthread_setname_np(pthread_self(), "self-named"));
    in_self_named();
    return argument;
}

static NOINLINE void *other_named_start(void *argument)
{
    pthread_barrier_wait(&named);
    in_other_named();
    return argument;
}

static NOINLINE void *prctl_named_start(void *argument)
{
    char name[16] = "";
    CHECK(!prctl(PR_SET_NAME, "prctl-named"));
    CHECK(!prctl(PR_GET_NAME, name) && !strcmp(name, "prctl-named"));
    in_prctl_named();
    return argument;
}

static NOINLINE void *inheritor_start(void *argument)
{
    in_inheritor();
    return argument;
}

static NOINLINE int std_start(void *argument)
{
    in_std_started();
    return *(int *)argument;
}

static void run(void *(*start)(void *))
{
    pthread_t thread;
    void *result = NULL;
    CHECK(!pthread_create(&thread, NULL, start, &named));
    if (start == other_named_start) {
        char name[16] = "";
        CHECK(!pthread_setname_np(thread, "other-named"));
        CHECK(!pthread_getname_np(thread, name, sizeof name) && !strcmp(name, "other-named"));
        pthread_barrier_wait(&named);
    }
    CHECK(!pthread_join(thread, &result) && result == &named);
}

static void run_std(void)
{
    thrd_t thread;
    int seven = 7, result = 0;
    CHECK(thrd_create(&thread, std_start, &seven) == thrd_success);
    CHECK(thrd_join(thread, &result) == thrd_success && result == 7);
}

int main(void)
{
    pthread_barrier_init(&named, NULL, 2);
    in_main();
    run(self_named_start);
    run(other_named_start);
    labelprof_set("team", "red");
    run(prctl_named_start);
    run_std();
    labelprof_unset("team");
    CHECK(!pthread_setname_np(pthread_self(), "captain"));
    in_renamed_main();
    run(inheritor_start);
    CHECK(pthread_setname_np(pthread_self(), "much-too-long-a-name") != 0);
    return 0;
}
