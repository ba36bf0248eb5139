/* SPDX-License-Identifier: MIT
 * The doors of include/labelprof.h: what a program, or its Python, Rust or Node, may call.
 * Threads: any. Signals: setting labels is safe in a handler (refused with -1 if it interrupted
 * another change); a dump in a handler inside the profiler is refused.
 */
#include <string.h>

#include "base/attributes.h"
#include "base/thread.h"
#include "labels/current.h"
#include "labels/sources.h"
#include "publish/dump.h"
#include "session.h"

int labelprof_set(const char *key, const char *value);
int labelprof_set_num(const char *key, long value, const char *unit);
int labelprof_unset(const char *key);
struct label_capture *labelprof_capture(void);
int labelprof_attach(struct label_capture *labels);
void labelprof_release(struct label_capture *labels);
int labelprof_dump(const char *type, const char *path);
struct scope_state;
void labelprof_scope_enter(struct scope_state *scope, const char *key, const char *value);
void labelprof_scope_leave(struct scope_state *scope);

/* A thread that has its block has passed the question before. */
static inline bool is_ready(void)
{
    return likely(thread_self.block != NULL) || session_is_on();
}

EXPORT int labelprof_set(const char *key, const char *value)
{
    return value && is_ready() ? current_set_text(key, value, strlen(value)) : -1;
}

EXPORT int labelprof_set_num(const char *key, long value, const char *unit)
{
    return is_ready() ? current_set_number(key, value, unit) : -1;
}

EXPORT int labelprof_unset(const char *key)
{
    return is_ready() ? current_unset(key) : -1;
}

EXPORT struct label_capture *labelprof_capture(void)
{
    return is_ready() ? current_capture() : NULL;
}

EXPORT int labelprof_attach(struct label_capture *labels)
{
    return is_ready() ? current_attach(labels) : -1;
}

EXPORT void labelprof_release(struct label_capture *labels)
{
    current_release(labels);
}

/* include/labelprof.h: struct labelprof_scope_state. */
struct scope_state {
    int is_active;
    struct label_before before;
};
_Static_assert(sizeof(struct scope_state) <= sizeof(long) * 48, "fits what the header reserves");

EXPORT void labelprof_scope_enter(struct scope_state *scope, const char *key, const char *value)
{
    scope->is_active = key && value && is_ready() &&
                       current_replace_text(key, value, &scope->before) == 0;
}

EXPORT void labelprof_scope_leave(struct scope_state *scope)
{
    current_put_back(&scope->before);
}

EXPORT int labelprof_dump(const char *type, const char *path)
{
    if (!session_is_on() || !session_owns_instance() || !thread_enter())
        return -1;
    sources_refresh(false);
    int result = dump_one(type, path);
    thread_leave();
    return result;
}
