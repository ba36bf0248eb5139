/* SPDX-License-Identifier: MIT
 * Code made at run time that calls malloc: with frame pointers and no unwind information at all,
 * or ("register") with an FDE registered by __register_frame as JITs do, while C++ exceptions'
 * look-ups run beside it (_Unwind_Find_FDE mallocs under its mutex). 100 x 100 B are leaked from
 * the generated code, 100 x 100 B in before_and_after. Argument: plain or register. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>
#include "common.h"

void __register_frame(void *begin);
void __deregister_frame(void *begin);

typedef void *jit_function(size_t size, void *(*call)(size_t));

/* push rbp; mov rbp,rsp; call *rsi; pop rbp; ret */
static const unsigned char code_bytes[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};

static NOINLINE void before_and_after(void)
{
    for (int i = 0; i < 50; i++)
        keep(malloc(100));
}

static jit_function *make_code(void)
{
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code, code_bytes, sizeof code_bytes);
    CHECK(!mprotect(code, 4096, PROT_READ | PROT_EXEC));
    return (jit_function *)code;
}

static unsigned char *put(unsigned char *at, const void *bytes, size_t n)
{
    memcpy(at, bytes, n);
    return at + n;
}

/* .eh_frame of one CIE and one FDE for the code above: absolute addresses, end marker. */
static void *make_eh_frame(const void *code)
{
    static unsigned char frame[256] __attribute__((aligned(8)));
    static const unsigned char cie[] = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0};
    static const unsigned char rules[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6,
                                          0x43, 0x0c, 7,  8,    0, 0, 0,    0};
    uint32_t zero = 0, cie_bytes = 4 + sizeof cie, fde_bytes = 4 + 16 + sizeof rules, back;
    uint64_t start = (uintptr_t)code, length = sizeof code_bytes;
    unsigned char *at = put(frame, &cie_bytes, 4);
    at = put(put(at, &zero, 4), cie, sizeof cie);
    at = put(at, &fde_bytes, 4);
    back = (uint32_t)(at - frame);
    at = put(at, &back, 4);
    at = put(put(put(at, &start, 8), &length, 8), rules, sizeof rules);
    put(at, &zero, 4);
    return frame;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count)
{
    (void)context;
    ++*(int *)count;
    return _URC_NO_REASON;
}

/* What a JIT's exceptions do: unwind through the generated frame, while everything is sampled. */
static void *allocate_and_unwind(size_t size)
{
    int n_frames = 0;
    void *object = malloc(size);
    keep(object);
    _Unwind_Backtrace(count_frame, &n_frames);
    CHECK(n_frames >= 4);
    return object;
}

int main(int argc, char **argv)
{
    jit_function *code = make_code();
    int is_registered = argc > 1 && !strcmp(argv[1], "register");
    before_and_after();
    for (int round = 0; round < 10; round++) {
        void *frame = make_eh_frame((const void *)code);
        if (is_registered)
            __register_frame(frame);
        for (int i = 0; i < 10; i++)
            keep(code(100, is_registered ? allocate_and_unwind : malloc));
        if (is_registered)
            __deregister_frame(frame);
    }
    before_and_after();
    puts("done");
    return 0;
}
