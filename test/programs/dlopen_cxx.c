/* SPDX-License-Identifier: MIT
 * A C program, not linked with libstdc++, that loads the C++ plugin named in its argument: 10
 * objects of 100 B leaked by gamma_news, 200 exceptions caught. */
#include <dlfcn.h>
#include "common.h"

static void (*plugin_throws)(void);

static NOINLINE void host_calls_back(void)
{
    plugin_throws();
    keep(&plugin_throws); /* no tail call: this frame is thrown through */
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    void *(*entry)(size_t) = (void *(*)(size_t))dlsym(handle, "plugin_entry");
    int (*plugin_catches)(void (*)(void)) = (int (*)(void (*)(void)))dlsym(handle, "plugin_catches");
    plugin_throws = (void (*)(void))dlsym(handle, "plugin_throws");
    CHECK(entry && plugin_catches && plugin_throws);
    for (int i = 0; i < 10; i++)
        keep(entry(100));
    printf("%d\n", plugin_catches(host_calls_back));
    return 0;
}
