// SPDX-License-Identifier: MIT
// A C++ plugin of a C program: it brings libstdc++ in after the library. It allocates with new,
// throws through its own frames, through its host's and through the library's operator new.
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" __attribute__((noinline)) void *gamma_news(std::size_t size)
{
    void *object = ::operator new(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

__attribute__((noinline)) static void throw_deep(int depth)
{
    std::string local(100, 'x');
    if (!depth)
        throw std::runtime_error("from the depth: " + local);
    throw_deep(depth - 1);
    __asm__ volatile("" : : "r"(&local) : "memory");
}

__attribute__((noinline)) static bool catches_bad_alloc()
{
    try {
        gamma_news(PTRDIFF_MAX);
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

typedef void callback_function();

extern "C" void plugin_throws()
{
    throw_deep(3);
}

// The host's function calls plugin_throws: the exception passes through C code.
extern "C" int plugin_catches(callback_function *host_calls_back)
{
    int n_caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            host_calls_back();
        } catch (const std::runtime_error &error) {
            n_caught += error.what() == "from the depth: " + std::string(100, 'x');
        }
        n_caught += catches_bad_alloc();
    }
    std::vector<std::string> words(1000, std::string(50, 'w'));
    return words.size() == 1000 ? n_caught : -1;
}

extern "C" void *plugin_entry(std::size_t size)
{
    void *object = gamma_news(size);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}
