/* SPDX-License-Identifier: MIT
 * Allocations on stacks that aren't the thread's: 10 x 100 B each in on_altstack (a handler on a
 * sigaltstack), on_coroutine (makecontext, 16 KiB stack), on_moved_stack (a thread on memory of
 * the program's choosing). */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "common.h"

static NOINLINE void on_altstack(void)
{
    keep(malloc(100));
}

static NOINLINE void on_coroutine(void)
{
    keep(malloc(100));
}

static NOINLINE void on_moved_stack(void)
{
    keep(malloc(100));
}

/* A stack with an unreadable page on both sides: who reads past its end dies. */
static void *guarded_stack(size_t bytes)
{
    char *stack = mmap(NULL, bytes + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && !mprotect(stack + 4096, bytes, PROT_READ | PROT_WRITE));
    return stack + 4096;
}

static void handle(int number)
{
    (void)number;
    on_altstack();
}

static void run_altstack(void)
{
    size_t bytes = (size_t)sysconf(_SC_MINSIGSTKSZ) + 8192;
    bytes = (bytes + 4095) & ~(size_t)4095;
    stack_t stack = {.ss_sp = guarded_stack(bytes), .ss_size = bytes};
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    CHECK(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL));
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
}

static ucontext_t main_context, coroutine_context;

static void coroutine(void)
{
    for (;;) {
        on_coroutine();
        swapcontext(&coroutine_context, &main_context);
    }
}

static void run_coroutine(void)
{
    CHECK(!getcontext(&coroutine_context));
    coroutine_context.uc_stack.ss_sp = guarded_stack(16384);
    coroutine_context.uc_stack.ss_size = 16384;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    for (int i = 0; i < 10; i++)
        CHECK(!swapcontext(&main_context, &coroutine_context));
}

static void *moved(void *argument)
{
    for (int i = 0; i < 10; i++)
        on_moved_stack();
    return argument;
}

static void run_moved_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(!pthread_attr_init(&attributes));
    CHECK(!pthread_attr_setstack(&attributes, guarded_stack(65536), 65536));
    CHECK(!pthread_create(&thread, &attributes, moved, NULL));
    CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
    run_altstack();
    run_coroutine();
    run_moved_stack();
    return 0;
}
