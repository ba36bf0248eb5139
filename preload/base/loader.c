/* SPDX-License-Identifier: MIT */
#include "base/loader.h"

#include <string.h>

static __typeof(&_dl_find_object) find_object; /* fixed by loader_open */

bool loader_open(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "_dl_find_object");
    memcpy(&find_object, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool loader_find(uintptr_t address, struct dl_find_object *ret)
{
    return find_object && find_object((void *)address, ret) == 0;
}
