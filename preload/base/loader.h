/* SPDX-License-Identifier: MIT
 * Which loaded object an address lies in: glibc's lock-free answer, _dl_find_object (2.35).
 *
 * Looked up by name, for a linked reference, even a weak one, would bind the library to glibc 2.35.
 * dladdr answers too, but reads the object's whole symbol table for it.
 * Threads and signals: loader_find is async-signal-safe; loader_open runs once, at start, before it.
 */
#ifndef LABELPROF_BASE_LOADER_H
#define LABELPROF_BASE_LOADER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

/* False: this C library has no such function. */
bool loader_open(void);

/* False: the address lies in no object. */
bool loader_find(uintptr_t address, struct dl_find_object *ret);

#endif
