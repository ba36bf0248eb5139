/* SPDX-License-Identifier: MIT
 * C++ (and old Rust) symbol names as their authors wrote them.
 *
 * Threads: one. Allocation: the result is the caller's to free.
 * Failure: a name that is no mangled name, or too deep to take apart, comes back as it is.
 */
#ifndef LABELPROF_CLI_DEMANGLE_H
#define LABELPROF_CLI_DEMANGLE_H

char *demangle(const char *name);

#endif
