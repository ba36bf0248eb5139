/* SPDX-License-Identifier: MIT
 *
 * labelprof.h - say what a thread is working on, so that a heap profile can tell.
 *
 * Header only: include it and link nothing. Without liblabelprof.so preloaded every call returns
 * -1 (or NULL) after a few ns; with it, labels go to the calling thread and stay with each object
 * sampled while they are set, whoever frees it. Clean in C89 and C++98; works with -static (where
 * nothing can be preloaded) and -no-pie.
 *
 * Keys: 1 to 64 bytes, not starting with "pprof::". Values: up to 256 bytes, longer ones are cut at
 * a character, "" is no label. At most 32 labels a thread; setting a key again replaces its value.
 * A new thread starts with its creator's labels.
 * Threads: every function acts on the calling thread only, but labelprof_dump, which is for the
 * process. Signals: all are async-signal-safe once one of them has been called outside a handler;
 * one that interrupts another answers -1.
 */
#ifndef LABELPROF_H
#define LABELPROF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Labels taken with a task: see labelprof_capture. */
typedef struct label_capture labelprof_labels;

#define LABELPROF_UNUSED_ __attribute__((unused))

/* dlsym under a name of our own (no declaration to clash with) and weak (a static program has none). */
extern void *labelprof_dlsym_(void *, const char *) __asm__("dlsym") __attribute__((weak));

/* What LABELPROF_SCOPE keeps; filled in by the library. */
struct labelprof_scope_state {
    int is_active;
    long opaque[47];
};

typedef int labelprof_set_f_(const char *, const char *);
typedef int labelprof_set_num_f_(const char *, long, const char *);
typedef int labelprof_unset_f_(const char *);
typedef labelprof_labels *labelprof_capture_f_(void);
typedef int labelprof_attach_f_(labelprof_labels *);
typedef void labelprof_release_f_(labelprof_labels *);
typedef int labelprof_dump_f_(const char *, const char *);
typedef void labelprof_scope_enter_f_(struct labelprof_scope_state *, const char *, const char *);
typedef void labelprof_scope_leave_f_(struct labelprof_scope_state *);

struct labelprof_functions_ {
    int is_looked_up; /* written last */
    labelprof_set_f_ *set;
    labelprof_set_num_f_ *set_num;
    labelprof_unset_f_ *unset;
    labelprof_capture_f_ *capture;
    labelprof_attach_f_ *attach;
    labelprof_release_f_ *release;
    labelprof_dump_f_ *dump;
    labelprof_scope_enter_f_ *scope_enter;
    labelprof_scope_leave_f_ *scope_leave;
};

static struct labelprof_functions_ labelprof_functions_ LABELPROF_UNUSED_;

/* ISO C has no conversion from a data pointer to a function pointer; the bytes are the same. */
LABELPROF_UNUSED_ static void labelprof_find_(void *function, const char *name)
{
    void *found = labelprof_dlsym_(0, name); /* 0: RTLD_DEFAULT */
    __builtin_memcpy(function, &found, sizeof found);
}

/* Two threads may both do this: they write the same values. */
LABELPROF_UNUSED_ static __attribute__((noinline, cold)) void labelprof_look_up_(void)
{
    struct labelprof_functions_ *f = &labelprof_functions_;
    if (labelprof_dlsym_) {
        labelprof_find_(&f->set, "labelprof_set");
        labelprof_find_(&f->set_num, "labelprof_set_num");
        labelprof_find_(&f->unset, "labelprof_unset");
        labelprof_find_(&f->capture, "labelprof_capture");
        labelprof_find_(&f->attach, "labelprof_attach");
        labelprof_find_(&f->release, "labelprof_release");
        labelprof_find_(&f->dump, "labelprof_dump");
        labelprof_find_(&f->scope_enter, "labelprof_scope_enter");
        labelprof_find_(&f->scope_leave, "labelprof_scope_leave");
    }
    __atomic_store_n(&f->is_looked_up, 1, __ATOMIC_RELEASE);
}

LABELPROF_UNUSED_ static __inline__ const struct labelprof_functions_ *labelprof_get_(void)
{
    if (__builtin_expect(!__atomic_load_n(&labelprof_functions_.is_looked_up, __ATOMIC_ACQUIRE), 0))
        labelprof_look_up_();
    return &labelprof_functions_;
}

/* Sets a label of the calling thread. 0: done; -1: refused (see above), or no library. */
LABELPROF_UNUSED_ static __inline__ int labelprof_set(const char *key, const char *value)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->set ? f->set(key, value) : -1;
}

/* The same for a number; unit may be NULL. The key "bytes" is refused: the object's size has it. */
LABELPROF_UNUSED_ static __inline__ int labelprof_set_num(const char *key, long value,
                                                         const char *unit)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->set_num ? f->set_num(key, value, unit) : -1;
}

/* Removes a label; one that is not set counts as removed. */
LABELPROF_UNUSED_ static __inline__ int labelprof_unset(const char *key)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->unset ? f->unset(key) : -1;
}

/* The calling thread's labels as an object, to carry with a task through a thread pool, a
 * coroutine, an event loop. NULL: no labels, no memory, or no library. */
LABELPROF_UNUSED_ static __inline__ labelprof_labels *labelprof_capture(void)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->capture ? f->capture() : (labelprof_labels *)0;
}

/* Replaces the calling thread's labels by the captured ones (NULL: by none). The thread keeps them
 * after the release. */
LABELPROF_UNUSED_ static __inline__ int labelprof_attach(labelprof_labels *labels)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->attach ? f->attach(labels) : -1;
}

/* Gives a capture back, once. NULL is fine. */
LABELPROF_UNUSED_ static __inline__ void labelprof_release(labelprof_labels *labels)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    if (f->release)
        f->release(labels);
}

/* Writes a profile ("heap", "allocs") as of now to path; NULL: to LABELPROF_OUT. 0 or -1. */
LABELPROF_UNUSED_ static __inline__ int labelprof_dump(const char *type, const char *path)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    return f->dump ? f->dump(type, path) : -1;
}

LABELPROF_UNUSED_ static __inline__ void labelprof_scope_leave_(struct labelprof_scope_state *state)
{
    if (state->is_active)
        labelprof_functions_.scope_leave(state);
}

#define LABELPROF_JOIN2_(a, b) a##b
#define LABELPROF_JOIN_(a, b) LABELPROF_JOIN2_(a, b)

#ifdef __cplusplus
} /* extern "C" */

class labelprof_scope_
{
  public:
    labelprof_scope_(const char *key, const char *value)
    {
        const struct labelprof_functions_ *f = labelprof_get_();
        state_.is_active = 0;
        if (f->scope_enter && f->scope_leave)
            f->scope_enter(&state_, key, value);
    }
    ~labelprof_scope_()
    {
        labelprof_scope_leave_(&state_);
    }

  private:
    labelprof_scope_(const labelprof_scope_ &);
    labelprof_scope_ &operator=(const labelprof_scope_ &);
    struct labelprof_scope_state state_;
};

/* Sets the label until the end of the block; then the value before it comes back. */
#define LABELPROF_SCOPE(key, value) \
    labelprof_scope_ LABELPROF_JOIN_(labelprof_scope_at_, __LINE__)(key, value)

#else

LABELPROF_UNUSED_ static __inline__ int
labelprof_scope_enter_(struct labelprof_scope_state *state, const char *key, const char *value)
{
    const struct labelprof_functions_ *f = labelprof_get_();
    state->is_active = 0;
    if (f->scope_enter && f->scope_leave)
        f->scope_enter(state, key, value);
    return 0;
}

/* Sets the label until the end of the block; then the value before it comes back. It is a
 * declaration, so in C89 it stands before the statements of its block. */
#define LABELPROF_SCOPE(key, value)                                                         \
    struct labelprof_scope_state LABELPROF_JOIN_(labelprof_scope_at_, __LINE__)             \
        __attribute__((cleanup(labelprof_scope_leave_)));                                   \
    int LABELPROF_JOIN_(labelprof_scope_in_, __LINE__) LABELPROF_UNUSED_ =                  \
        labelprof_scope_enter_(&LABELPROF_JOIN_(labelprof_scope_at_, __LINE__), key, value)

#endif /* __cplusplus */

#endif
