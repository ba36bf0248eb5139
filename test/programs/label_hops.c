/* SPDX-License-Identifier: MIT
 * Tasks that share one thread keep their labels: argument "epoll" has connections whose labels are
 * attached as each is served, "coroutines" hand-made ones that are switched to with theirs. Each
 * of 8 tenants leaks 50 objects of 100 B in step, in many small turns; between them, as many without
 * labels in between_turns. */
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <ucontext.h>
#include <unistd.h>
#include "labelprof.h"
#include "common.h"

enum { N_TASKS = 8, N_TURNS = 50, STACK_BYTES = 128 * 1024 };

static NOINLINE void step(void)
{
    keep(malloc(100));
}

static NOINLINE void between_turns(void)
{
    keep(malloc(100));
}

static labelprof_labels *labels_of(int task)
{
    char tenant[16];
    snprintf(tenant, sizeof tenant, "tenant-%d", task);
    CHECK(labelprof_set("tenant", tenant) == 0);
    labelprof_labels *labels = labelprof_capture();
    CHECK(labels && labelprof_unset("tenant") == 0);
    return labels;
}

/* ---- an event loop ---- */

struct connection {
    int fd, n_turns;
    labelprof_labels *labels;
};

static void connect_task(int epoll, struct connection *connection, int task)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    *connection = (struct connection){eventfd(N_TURNS, EFD_SEMAPHORE), 0, labels_of(task)};
    CHECK(connection->fd >= 0 &&
          epoll_ctl(epoll, EPOLL_CTL_ADD, connection->fd, &event) == 0);
}

/* One unit of work; true: the connection is done. */
static int serve(struct connection *connection)
{
    uint64_t one;
    CHECK(read(connection->fd, &one, sizeof one) == sizeof one);
    CHECK(labelprof_attach(connection->labels) == 0);
    step();
    CHECK(labelprof_attach(NULL) == 0);
    return ++connection->n_turns == N_TURNS;
}

static void run_epoll(void)
{
    struct connection connections[N_TASKS];
    int epoll = epoll_create1(EPOLL_CLOEXEC), n_open = N_TASKS;
    CHECK(epoll >= 0);
    for (int i = 0; i < N_TASKS; i++)
        connect_task(epoll, &connections[i], i);
    while (n_open > 0) {
        struct epoll_event events[3];
        int n = epoll_wait(epoll, events, 3, -1);
        for (int i = 0; i < n; i++) {
            struct connection *connection = events[i].data.ptr;
            if (serve(connection)) {
                labelprof_release(connection->labels);
                close(connection->fd);
                n_open--;
            }
            between_turns();
        }
    }
}

/* ---- coroutines ---- */

static struct coroutine {
    ucontext_t context;
    labelprof_labels *labels; /* as they were when it was last left */
    int is_done;
} coroutines[N_TASKS];

static ucontext_t scheduler;
static int current;

static void yield(void)
{
    labelprof_release(coroutines[current].labels);
    coroutines[current].labels = labelprof_capture(); /* it may have set others */
    swapcontext(&coroutines[current].context, &scheduler);
}

static void body(void)
{
    char tenant[16];
    snprintf(tenant, sizeof tenant, "tenant-%d", current);
    CHECK(labelprof_set("tenant", tenant) == 0);
    for (int turn = 0; turn < N_TURNS; turn++) {
        step();
        yield();
    }
    coroutines[current].is_done = 1;
    yield();
}

static void start(struct coroutine *coroutine)
{
    getcontext(&coroutine->context);
    coroutine->context.uc_stack.ss_sp = malloc(STACK_BYTES);
    coroutine->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine->context, body, 0);
}

static void switch_to(int task)
{
    current = task;
    CHECK(labelprof_attach(coroutines[task].labels) == 0);
    swapcontext(&scheduler, &coroutines[task].context);
    CHECK(labelprof_attach(NULL) == 0);
}

static void run_coroutines(void)
{
    for (int i = 0; i < N_TASKS; i++)
        start(&coroutines[i]);
    for (int n_done = 0; n_done < N_TASKS;)
        for (int i = 0; i < N_TASKS; i++) {
            if (coroutines[i].is_done)
                continue;
            switch_to(i);
            n_done += coroutines[i].is_done;
            if (!coroutines[i].is_done)
                between_turns();
        }
    for (int i = 0; i < N_TASKS; i++)
        labelprof_release(coroutines[i].labels);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    strcmp(argv[1], "epoll") == 0 ? run_epoll() : run_coroutines();
    return 0;
}
