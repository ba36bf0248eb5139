/* SPDX-License-Identifier: MIT
 * Demangling with the C++ runtime's own function, see demangle.h.
 */
#include "cli/demangle.h"

#include <stddef.h>
#include <string.h>
#include "cli/memory.h"

/* libstdc++ exports it with C linkage; its header is C++ only. */
extern char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

/* The demangler recurses once per nesting level: longer names than compilers write could be made
 * to use up its stack. */
enum { MAX_MANGLED_BYTES = 16384 };

char *demangle(const char *name)
{
    /* Without the prefix "i" would be read as the type int. */
    if (strncmp(name, "_Z", 2) == 0 && strlen(name) <= MAX_MANGLED_BYTES) {
        int status;
        char *demangled = __cxa_demangle(name, NULL, NULL, &status);
        if (demangled)
            return demangled;
    }
    return xstrdup(name);
}
