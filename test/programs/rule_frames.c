/* SPDX-License-Identifier: MIT
 * Functions to write label rules for. Each leaks 10 objects through grow_buffer: parse_text 100 B,
 * fill_cache 200 B, parse_cached 300 B by way of fill_cache, hidden_step (not exported) 400 B.
 * Usage: rule_frames [set KEY=VALUE | requests N | fork | chdir DIR | run]... */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "labelprof.h"
#include "common.h"

NOINLINE void *grow_buffer(size_t size)
{
    void *buffer = malloc(size);
    keep(buffer);
    return buffer;
}

static NOINLINE void ten_of(size_t size)
{
    for (int i = 0; i < 10; i++)
        keep(grow_buffer(size));
}

NOINLINE void parse_text(void)
{
    ten_of(100);
    keep(NULL);
}

NOINLINE void fill_cache(size_t size)
{
    ten_of(size);
    keep(NULL);
}

NOINLINE void parse_cached(void)
{
    fill_cache(300);
    keep(NULL);
}

static NOINLINE void hidden_step(void)
{
    ten_of(400);
    keep(NULL);
}

static NOINLINE void run(void)
{
    parse_text();
    fill_cache(200);
    parse_cached();
    hidden_step();
}

static void set(char *label)
{
    char *equals = strchr(label, '=');
    CHECK(equals);
    *equals = '\0';
    CHECK(labelprof_set(label, equals + 1) == 0);
}

/* As many label sets as rounds. */
static void requests(long n)
{
    for (long i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "r%ld", i);
        CHECK(labelprof_set("request", id) == 0);
        parse_text();
    }
    CHECK(labelprof_unset("request") == 0);
}

static void run_in_child(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run();
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "set"))
            set(argv[++i]);
        else if (!strcmp(argv[i], "requests"))
            requests(atol(argv[++i]));
        else if (!strcmp(argv[i], "fork"))
            run_in_child();
        else if (!strcmp(argv[i], "chdir"))
            CHECK(!chdir(argv[++i]));
        else
            run();
    }
    return 0;
}
