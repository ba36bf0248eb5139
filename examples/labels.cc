// SPDX-License-Identifier: MIT
// Labels from C++: a scope as an object, and tasks that take their labels along to a pool's threads.
//
//     g++ -Iinclude examples/labels.cc -o labels -pthread
//     labelprof run -- ./labels && labelprof top --by tenant labelprof.*.pb.gz
#include "labelprof.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// Until the end of the object's life; then the value before comes back.
class Label {
public:
    Label(const char *key, const std::string &value) : state()
    {
        if (labelprof_get_()->scope_enter)
            labelprof_get_()->scope_enter(&state, key, value.c_str());
    }
    ~Label() { labelprof_scope_leave_(&state); }
    Label(const Label &) = delete;
    Label &operator=(const Label &) = delete;

private:
    labelprof_scope_state state;
};

// A task with the labels of whoever made it: they are the thread's while it runs.
class Task {
public:
    explicit Task(std::function<void()> f) : work(std::move(f)), labels(labelprof_capture(), labelprof_release) {}
    void operator()() const
    {
        std::unique_ptr<labelprof_labels, void (*)(labelprof_labels *)> before(labelprof_capture(),
                                                                               labelprof_release);
        labelprof_attach(labels.get());
        work();
        labelprof_attach(before.get());
    }

private:
    std::function<void()> work;
    std::shared_ptr<labelprof_labels> labels;
};

static void *volatile kept;

static void handle(size_t n_bytes)
{
    kept = std::malloc(n_bytes);
}

int main()
{
    std::vector<Task> queue;
    for (const char *tenant : {"acme", "globex", "acme"}) {
        Label label("tenant", tenant);
        queue.emplace_back([] { handle(100000); });
        Label inner("route", "/cart");
        queue.emplace_back([] { handle(1000); });
    }
    std::thread pool([&queue] {
        for (const Task &task : queue)
            task();
        handle(10); // nobody's
    });
    pool.join();
    std::puts("done");
}
