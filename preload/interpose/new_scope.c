/* SPDX-License-Identifier: MIT */
#include "interpose/new_scope.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "base/loader.h"
#include "base/lock.h"
#include "interpose/next.h"
#include "sample/sample.h"

enum { SCOPES = 64 };

static struct scope {
    const struct link_map *object;
    void *found[NEW_SCOPE_SYMBOLS];
} scopes[SCOPES];
/* Only ever tried: a thread that can't have it, or a child forked while it was held, looks up anew. */
static struct lock scopes_lock;

/* In the scope of the object, else in the usual libraries if they are loaded. */
static void *look_up(const struct link_map *object, const char *symbol)
{
    static const char *const usual[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    void *found = NULL;
    for (size_t i = 0; i <= ARRAY_LENGTH(usual) && !found; i++) {
        const char *name = i ? usual[i - 1] : object && object->l_name[0] ? object->l_name : NULL;
        void *handle = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        found = dlsym(handle, symbol);
        if (found && next_provider(found) == next_provider(&next))
            found = NULL; /* our own door: on to the usual libraries */
        next_other.dlclose(handle);
    }
    next_symbol("free"); /* a hit: no error stays behind for the program's dlerror() */
    return found;
}

void new_scope_leave_out(const void *function)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && info.dli_saddr)
        sample_leave_out_at_leaf((uintptr_t)info.dli_saddr,
                                 (uintptr_t)info.dli_saddr + symbol->st_size);
}

static struct scope *scope_of(const struct link_map *object)
{
    struct scope *scope = &scopes[(uintptr_t)object / 64 % SCOPES];
    if (scope->object != object) {
        memset(scope, 0, sizeof *scope);
        scope->object = object;
    }
    return scope;
}

void *new_scope_find(const void *caller, unsigned index, const char *symbol)
{
    struct dl_find_object where;
    const struct link_map *object =
        loader_find((uintptr_t)caller, &where) ? where.dlfo_link_map : NULL;
    void *found = NULL;
    if (lock_try(&scopes_lock)) {
        found = scope_of(object)->found[index];
        lock_drop(&scopes_lock);
    }
    if (found)
        return found;
    found = look_up(object, symbol); /* without the lock: it takes the loader's */
    if (found && next_provider(found) != object) /* a C++ library's, which is never unloaded */
        new_scope_leave_out(found);
    if (lock_try(&scopes_lock)) {
        scope_of(object)->found[index] = found;
        lock_drop(&scopes_lock);
    }
    return found;
}

void new_scope_forget(void)
{
    bool is_mine = lock_try(&scopes_lock);
    for (int tries = 0; !is_mine && tries < 1000; tries++)
        is_mine = lock_try(&scopes_lock);
    memset(scopes, 0, sizeof scopes); /* also if a fork left it locked for good: then nobody reads */
    if (is_mine)
        lock_drop(&scopes_lock);
}
