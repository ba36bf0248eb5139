// SPDX-License-Identifier: MIT
// Every operator new and delete: 10 objects of 100 B live from each function by_*, 10 are freed
// by the matching delete. bad_alloc passes through the library; a new_handler is asked first.
#include <cstdint>
#include <new>
#include "common.h"

extern "C" NOINLINE void *by_new() { return ::operator new(100); }
extern "C" NOINLINE void *by_new_array() { return ::operator new[](100); }
extern "C" NOINLINE void *by_new_nothrow() { return ::operator new(100, std::nothrow); }
extern "C" NOINLINE void *by_new_array_nothrow() { return ::operator new[](100, std::nothrow); }
static constexpr auto A64 = std::align_val_t(64);
extern "C" NOINLINE void *by_new_aligned() { return ::operator new(100, A64); }
extern "C" NOINLINE void *by_new_array_aligned() { return ::operator new[](100, A64); }
extern "C" NOINLINE void *by_new_aligned_nothrow() { return ::operator new(100, A64, std::nothrow); }
extern "C" NOINLINE void *by_new_array_aligned_nothrow()
{
    return ::operator new[](100, A64, std::nothrow);
}

template <typename Make, typename Drop> static void try_one(Make make, Drop drop, bool aligned)
{
    for (int i = 0; i < 20; i++) {
        void *object = make();
        keep(object);
        CHECK(object && (!aligned || reinterpret_cast<std::uintptr_t>(object) % 64 == 0));
        if (i % 2)
            drop(object);
    }
}

static void every_variant()
{
    try_one(by_new, [](void *p) { ::operator delete(p); }, false);
    try_one(by_new, [](void *p) { ::operator delete(p, std::size_t(100)); }, false);
    try_one(by_new_array, [](void *p) { ::operator delete[](p); }, false);
    try_one(by_new_array, [](void *p) { ::operator delete[](p, std::size_t(100)); }, false);
    try_one(by_new_nothrow, [](void *p) { ::operator delete(p, std::nothrow); }, false);
    try_one(by_new_array_nothrow, [](void *p) { ::operator delete[](p, std::nothrow); }, false);
    try_one(by_new_aligned, [](void *p) { ::operator delete(p, A64); }, true);
    try_one(by_new_aligned, [](void *p) { ::operator delete(p, std::size_t(100), A64); }, true);
    try_one(by_new_array_aligned, [](void *p) { ::operator delete[](p, A64); }, true);
    try_one(by_new_array_aligned,
            [](void *p) { ::operator delete[](p, std::size_t(100), A64); }, true);
    try_one(by_new_aligned_nothrow, [](void *p) { ::operator delete(p, A64, std::nothrow); }, true);
    try_one(by_new_array_aligned_nothrow,
            [](void *p) { ::operator delete[](p, A64, std::nothrow); }, true);
}

static int n_asked;

static void no_more_help()
{
    n_asked++;
    std::set_new_handler(nullptr);
}

static NOINLINE bool throws(std::size_t bytes)
{
    try {
        keep(::operator new(bytes));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

static NOINLINE bool throws_aligned(std::size_t bytes)
{
    try {
        keep(::operator new[](bytes, A64));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int main()
{
    every_variant();
    CHECK(throws(PTRDIFF_MAX));
    CHECK(throws_aligned(PTRDIFF_MAX / 2));
    CHECK(!::operator new(PTRDIFF_MAX, std::nothrow));
    std::set_new_handler(no_more_help);
    CHECK(throws(PTRDIFF_MAX) && n_asked == 1);
    for (int i = 0; i < 1000; i++)
        CHECK(throws(PTRDIFF_MAX));
    return 0;
}
