// SPDX-License-Identifier: MIT
// operator new and delete of 64 bytes, served by rounds: new_delete.
#include <new>

#include "rounds.h"

struct object {
    char bytes[64];
};

static void new_delete(long n)
{
    while (n--) {
        object *p = new object;
        __asm__ volatile("" : : "r"(p) : "memory");
        delete p;
    }
}

int main()
{
    return serve_rounds(new_delete, 1);
}
