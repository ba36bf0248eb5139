// SPDX-License-Identifier: MIT
// Exactly as many objects as asked for, for counting each once whatever allocator stands behind:
// N by new, N by malloc, N by calloc, N by realloc of a block of its own (so 2 N made), N by
// aligned new; half of each freed. Sizes 48 B. Argument: N.
#include <cstdlib>
#include <new>
#include "common.h"

extern "C" NOINLINE void *exact_new() { return ::operator new(48); }
extern "C" NOINLINE void *exact_new_array() { return new char[48]; }
extern "C" NOINLINE void *exact_new_aligned() { return ::operator new(48, std::align_val_t(128)); }
extern "C" NOINLINE void *exact_malloc() { return std::malloc(48); }
extern "C" NOINLINE void *exact_calloc() { return std::calloc(6, 8); }
extern "C" NOINLINE void *exact_realloc() { return std::realloc(exact_malloc(), 96); }

template <typename Make, typename Drop> static void run(long n, Make make, Drop drop)
{
    for (long i = 0; i < n; i++) {
        void *object = make();
        keep(object);
        CHECK(object);
        if (i % 2)
            drop(object);
    }
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? std::atol(argv[1]) : 1000;
    run(n, exact_new, [](void *p) { ::operator delete(p); });
    run(n, exact_new_array, [](void *p) { delete[] static_cast<char *>(p); });
    run(n, exact_new_aligned, [](void *p) { ::operator delete(p, std::align_val_t(128)); });
    run(n, exact_malloc, [](void *p) { std::free(p); });
    run(n, exact_calloc, [](void *p) { std::free(p); });
    run(n, exact_realloc, [](void *p) { std::free(p); });
    return 0;
}
