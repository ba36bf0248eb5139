/* SPDX-License-Identifier: MIT
 * operator new for programs that have none in the scope behind us: a C program whose plugins, opened
 * with RTLD_LOCAL, bring their own C++ library, or an operator new of their own.
 *
 * Bare, each plugin's references were bound in its own scope; since they are bound to our doors, each
 * call is forwarded by who makes it. Found once per calling object and kept until a dlclose.
 * Threads: thread-safe. The first call of an object takes the loader's lock, as binding it lazily would
 * have. Failure: NULL.
 */
#ifndef LABELPROF_INTERPOSE_NEW_SCOPE_H
#define LABELPROF_INTERPOSE_NEW_SCOPE_H

enum { NEW_SCOPE_SYMBOLS = 20 };

/* The function that a reference to `symbol`, number `index` < NEW_SCOPE_SYMBOLS of them, made by the
 * object of `caller` would have been bound to. */
void *new_scope_find(const void *caller, unsigned index, const char *symbol);

/* This operator new calls malloc: its own frame is no leaf of the program's. */
void new_scope_leave_out(const void *function);

/* Before a dlclose: what was found may go. */
void new_scope_forget(void);

#endif
