/* SPDX-License-Identifier: MIT
 * The doors that end a process without atexit handlers, and the one that unloads a library.
 * exit() and quick_exit() come to session.c by handlers registered first, hence run last.
 */
#include <unistd.h>

#include "base/attributes.h"
#include "interpose/new_scope.h"
#include "interpose/next.h"
#include "labels/sources.h"
#include "session.h"
#include "unwind/walk.h"

void _Exit(int status);
int dlclose(void *handle);

EXPORT void _exit(int status)
{
    next_resolve();
    session_end();
    next_other.exit_now(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}

EXPORT int dlclose(void *handle)
{
    next_resolve();
    bool is_on = session_is_on();
    new_scope_forget();
    if (is_on)
        sources_before_unload();
    int result = next_other.dlclose(handle);
    new_scope_forget(); /* again: its destructors may have been looked up meanwhile */
    if (is_on) {
        unwind_after_unload();
        sources_after_unload();
    }
    return result;
}
