/* SPDX-License-Identifier: MIT
 * Loads plugins in turn, at one address if the loader is willing, and leaks 10 objects of 100 B
 * in each, each round. Arguments: rounds, plugin files. Prints the address of each entry. */
#include <dlfcn.h>
#include "common.h"

typedef void *entry_function(size_t size);

static NOINLINE void call_plugin(entry_function *entry)
{
    for (int i = 0; i < 10; i++)
        keep(entry(100));
}

static NOINLINE void load_and_call(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle);
    entry_function *entry = (entry_function *)dlsym(handle, "plugin_entry");
    CHECK(entry);
    printf("%p\n", (void *)entry);
    call_plugin(entry);
    CHECK(!dlclose(handle));
}

int main(int argc, char **argv)
{
    for (int round = 0; round < atoi(argv[1]); round++)
        for (int i = 2; i < argc; i++)
            load_and_call(argv[i]);
    return 0;
}
