// SPDX-License-Identifier: MIT
// Exceptions in threads while everything is sampled; a deep stack; a destructor that allocates.
// 4 threads x 500 exceptions; 10 objects of 100 B leaked in bottom_of_deep_stack, 200 frames down.
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "common.h"

extern "C" NOINLINE void bottom_of_deep_stack()
{
    for (int i = 0; i < 10; i++)
        keep(std::malloc(100));
}

static NOINLINE void go_down(int depth)
{
    if (!depth)
        bottom_of_deep_stack();
    else
        go_down(depth - 1);
    keep(&depth);
}

struct allocates_when_destroyed {
    ~allocates_when_destroyed()
    {
        std::vector<char> room(500);
        keep(room.data());
    }
};

static NOINLINE void throw_through(int depth)
{
    allocates_when_destroyed guard;
    if (!depth)
        throw std::runtime_error(std::string(200, 'e'));
    throw_through(depth - 1);
}

static void throw_many(int *n_caught)
{
    for (int i = 0; i < 500; i++) {
        try {
            throw_through(i % 20);
        } catch (const std::exception &error) {
            *n_caught += std::string(error.what()) == std::string(200, 'e');
        }
    }
}

int main()
{
    int n_caught[4] = {0, 0, 0, 0};
    std::vector<std::thread> threads;
    for (int &n : n_caught)
        threads.emplace_back(throw_many, &n);
    for (std::thread &thread : threads)
        thread.join();
    go_down(200);
    std::printf("%d\n", n_caught[0] + n_caught[1] + n_caught[2] + n_caught[3]);
}
