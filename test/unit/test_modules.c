/* SPDX-License-Identifier: MIT
 * Modules as the kernel shows them, and plugins that come and go at one address. The plugins are
 * built here, alike to the byte but for their names and build ids, so that one takes the other's
 * place exactly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/region.h"
#include "unwind/find.h"
#include "unwind/modules.h"
#include "unwind/walk.h"

enum { MAX_FRAMES = 64, COINCIDENCE_TRIES = 200 };

static char directory[PATH_MAX];

static void build_plugin(const char *name, const char *build_id)
{
    char command[2 * PATH_MAX];
    const char *compiler = getenv("CC") ? getenv("CC") : "cc";
    snprintf(command, sizeof(command),
             "%s -x c - -shared -fPIC -O1 -Wl,--build-id=0x%s -o %s/%s.so <<'END'\n"
             "void %s_first(void (*f)(void)) { f(); __asm__ volatile(\"\"); }\n"
             "void %s_second(void (*f)(void)) { f(); __asm__ volatile(\"nop\"); }\n"
             "END\n",
             compiler, build_id, directory, name, name, name);
    assert_int_equal(system(command), 0);
}

static const char *path_to(const char *name)
{
    static char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s.so", directory, name);
    return path;
}

struct plugin {
    void *handle;
    void (*first)(void (*)(void)), (*second)(void (*)(void));
};

static struct plugin open_plugin(const char *name)
{
    char symbol[64];
    struct plugin plugin = {.handle = dlopen(path_to(name), RTLD_NOW)};
    assert_non_null(plugin.handle);
    snprintf(symbol, sizeof(symbol), "%s_first", name);
    plugin.first = (void (*)(void (*)(void)))dlsym(plugin.handle, symbol);
    snprintf(symbol, sizeof(symbol), "%s_second", name);
    plugin.second = (void (*)(void (*)(void)))dlsym(plugin.handle, symbol);
    assert_true(plugin.first && plugin.second);
    return plugin;
}

static __thread struct stack_bounds thread_bounds;
static __thread uint64_t frames[MAX_FRAMES];
static __thread unsigned n_frames;

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
    thread_bounds = (struct stack_bounds){(uintptr_t)low, (uintptr_t)low + bytes};
}

static __attribute__((noinline)) void take(void)
{
    struct unwind_regs regs;
    __asm__ volatile("lea 0f(%%rip), %0\n0: mov %%rsp, %1\nmov %%rbp, %2"
                     : "=&r"(regs.pc), "=&r"(regs.sp), "=&r"(regs.bp));
    regs.pc++;
    n_frames = unwind_walk(regs, thread_bounds, frames, MAX_FRAMES);
}

/* frames[0] is take(), frames[1] the plugin's function. */
static uint64_t frame_in(void (*function)(void (*)(void)))
{
    function(take);
    if (n_frames < 4 || frames[n_frames - 1] == FRAME_TRUNCATED)
        return 0;
    return FRAME_ADDRESS(frames[1]) - (uintptr_t)function < 64 ? frames[1] : 0;
}

static uint32_t module_of(uint64_t frame)
{
    assert_true(frame != 0);
    return FRAME_MODULE(frame);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static void expect_function(uint64_t frame, const char *name)
{
    Dl_info info;
    assert_true(dladdr((void *)FRAME_ADDRESS(frame), &info) != 0);
    assert_string_equal(info.dli_sname, name);
    assert_string_equal(modules_get(FRAME_MODULE(frame))->path, info.dli_fname);
}

struct line { /* of /proc/self/maps */
    unsigned long start, limit, offset;
    char path[PATH_MAX];
};

static bool find_line(uintptr_t address, struct line *ret_line)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char text[PATH_MAX + 128], rights[8];
    bool is_found = false;
    while (!is_found && maps && fgets(text, sizeof(text), maps)) {
        ret_line->path[0] = '\0';
        sscanf(text, "%lx-%lx %7s %lx %*s %*s %4095s", &ret_line->start, &ret_line->limit, rights,
               &ret_line->offset, ret_line->path);
        is_found = address >= ret_line->start && address < ret_line->limit && rights[2] == 'x';
    }
    if (maps)
        fclose(maps);
    return is_found;
}

static void expect_as_mapped(const struct module *module)
{
    struct line line;
    assert_true(find_line(module->start, &line));
    assert_int_equal(module->start, line.start);
    assert_int_equal(module->limit, line.limit);
    assert_int_equal(module->file_offset, line.offset);
    char real[PATH_MAX];
    assert_string_equal(realpath(module->path, real) ? real : module->path, line.path);
}

static void the_main_program_is_number_one(void **state)
{
    (void)state;
    const struct module *module = modules_get(1);
    char exe[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
    assert_string_equal(module->path, exe);
    expect_as_mapped(module);
    take();
    assert_int_equal(FRAME_MODULE(frames[0]), 1);
}

static void unknown_ids_give_nothing(void **state)
{
    (void)state;
    assert_null(modules_get(0));
    assert_null(modules_get(modules_count() + 1));
    assert_null(modules_get(UINT32_MAX));
}

static void all_are_as_the_kernel_maps_them(void **state)
{
    (void)state;
    const void *const code[] = {(void *)system, (void *)dlopen, (void *)cmocka_set_message_output,
                                (void *)all_are_as_the_kernel_maps_them};
    for (unsigned i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
        uint32_t id;
        struct cfi_tables tables;
        assert_int_equal(modules_find((uintptr_t)code[i], &id, &tables), MODULES_FOUND);
        const struct module *module = modules_get(id);
        assert_true((uintptr_t)code[i] >= module->start && (uintptr_t)code[i] < module->limit);
        expect_as_mapped(module);
        assert_false(module->unloaded);
        assert_true(module->build_id_bytes > 0);
    }
}

static void the_vdso_has_its_name(void **state)
{
    (void)state;
    uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);
    uint32_t id;
    struct cfi_tables tables;
    if (!vdso || modules_find(vdso + 0x800, &id, &tables) != MODULES_FOUND)
        skip(); /* a kernel without one, or with another layout */
    assert_string_equal(modules_get(id)->path, "[vdso]");
}

static void data_and_the_heap_are_no_modules(void **state)
{
    (void)state;
    uint32_t id;
    struct cfi_tables tables;
    static int data;
    void *heap = malloc(1);
    assert_int_equal(modules_find((uintptr_t)&data, &id, &tables), MODULES_OUTSIDE);
    assert_int_equal(modules_find((uintptr_t)heap, &id, &tables), MODULES_OUTSIDE);
    free(heap);
}

/* Opens the other plugin where this one was, having closed this one. */
static struct plugin replace(struct plugin old, const char *new_name)
{
    uintptr_t place = (uintptr_t)old.first;
    dlclose(old.handle);
    struct plugin new = open_plugin(new_name);
    if ((uintptr_t) new.first != place) {
        dlclose(new.handle);
        new.handle = NULL;
    }
    return new;
}

/* Twice at one address: true if the loader put them there. */
static bool one_takes_the_others_place(void)
{
    struct plugin alpha = open_plugin("alpha");
    uint64_t in_alpha = frame_in(alpha.first);
    expect_function(in_alpha, "alpha_first");
    struct plugin gamma = replace(alpha, "gamma");
    if (!gamma.handle)
        return false;
    unwind_after_unload();
    assert_true(modules_get(module_of(in_alpha))->unloaded);
    uint64_t in_gamma = frame_in(gamma.first);
    expect_function(in_gamma, "gamma_first");
    assert_int_equal(FRAME_ADDRESS(in_gamma), FRAME_ADDRESS(in_alpha));
    assert_int_not_equal(module_of(in_gamma), module_of(in_alpha));
    assert_true(ends_with(modules_get(module_of(in_alpha))->path, "alpha.so"));

    alpha = replace(gamma, "alpha");
    if (!alpha.handle)
        return false;
    unwind_after_unload();
    assert_int_equal(frame_in(alpha.first), in_alpha); /* its old number */
    assert_false(modules_get(module_of(in_alpha))->unloaded);
    dlclose(alpha.handle);
    unwind_after_unload();
    return true;
}

static void try_until_they_coincide(bool (*attempt)(void))
{
    for (int i = 0; i < COINCIDENCE_TRIES; i++)
        if (attempt())
            return;
    fail_msg("the loader never used an address twice");
}

static void plugins_at_one_address_are_told_apart(void **state)
{
    (void)state;
    try_until_they_coincide(one_takes_the_others_place);
}

/* As libc does it with its own plugins: nobody calls unwind_after_unload. */
static bool one_takes_the_others_place_unannounced(void)
{
    struct plugin alpha = open_plugin("alpha");
    uint64_t in_alpha = frame_in(alpha.first);
    struct plugin gamma = replace(alpha, "gamma");
    if (!gamma.handle)
        return false;
    uint64_t in_gamma = frame_in(gamma.second); /* never seen in alpha: found out anew */
    expect_function(in_gamma, "gamma_second");
    assert_true(modules_get(module_of(in_alpha))->unloaded);
    expect_function(frame_in(gamma.first), "gamma_first");
    dlclose(gamma.handle);
    unwind_after_unload();
    return true;
}

static void an_unannounced_change_is_noticed_at_the_next_new_address(void **state)
{
    (void)state;
    try_until_they_coincide(one_takes_the_others_place_unannounced);
}

static void build_ids_are_the_files(void **state)
{
    (void)state;
    struct plugin alpha = open_plugin("alpha");
    const struct module *module = modules_get(module_of(frame_in(alpha.first)));
    const uint8_t expected[] = {0xa1, 0xfa, 0x01};
    assert_int_equal(module->build_id_bytes, 3);
    assert_memory_equal(module->build_id, expected, 3);
    expect_as_mapped(module);
    dlclose(alpha.handle);
    unwind_after_unload();
}

static void a_relative_name_becomes_absolute(void **state)
{
    (void)state;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(directory), 0);
    void *handle = dlopen("./delta.so", RTLD_NOW);
    assert_non_null(handle);
    void (*first)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "delta_first");
    uint64_t frame = frame_in(first);
    assert_int_equal(chdir(before), 0);
    assert_string_equal(modules_get(module_of(frame))->path, path_to("delta"));
    modules_new_generation();
    assert_int_equal(frame_in(first), frame); /* and is known again from elsewhere */
    dlclose(handle);
    unwind_after_unload();
    assert_true(modules_get(module_of(frame))->unloaded);
}

static void a_thousand_rounds_of_plugins_add_no_more_than_places(void **state)
{
    (void)state;
    uint32_t before = modules_count();
    uintptr_t places[64];
    unsigned n_places = 0;
    for (int round = 0; round < 1000; round++) {
        struct plugin plugin = open_plugin(round % 2 ? "alpha" : "gamma");
        assert_true(frame_in(plugin.first) != 0);
        unsigned i = 0;
        while (i < n_places && places[i] != (uintptr_t)plugin.first)
            i++;
        if (i == n_places && n_places < 64)
            places[n_places++] = (uintptr_t)plugin.first;
        dlclose(plugin.handle);
        unwind_after_unload();
    }
    assert_true(n_places < 64);
    assert_true(modules_count() - before <= 2 * n_places);
}

/* As newer patchelf leaves files: the program headers behind the last segment's old end, at an
 * address that isn't their file offset. */
static void move_headers(const char *from, const char *to)
{
    static union {
        ElfW(Ehdr) elf;
        uint8_t bytes[1 << 16];
    } file;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    size_t n = (fread(file.bytes, 1, sizeof(file.bytes), in) + 7) / 8 * 8;
    size_t table_bytes = file.elf.e_phnum * sizeof(ElfW(Phdr));
    ElfW(Phdr) *table = (void *)(file.bytes + file.elf.e_phoff), *last = NULL;
    for (int i = 0; i < file.elf.e_phnum; i++)
        if (table[i].p_type == PT_LOAD)
            last = &table[i];
    assert_true(last && last->p_vaddr != last->p_offset && n + table_bytes < sizeof(file.bytes));
    last->p_filesz = last->p_memsz = n + table_bytes - last->p_offset;
    memcpy(file.bytes + n, table, table_bytes);
    memset(table, 0, table_bytes);
    file.elf.e_phoff = n;
    assert_int_equal(fwrite(file.bytes, 1, n + table_bytes, out), n + table_bytes);
    fclose(in);
    fclose(out);
}

static void program_headers_are_found_where_patchelf_moves_them(void **state)
{
    (void)state;
    char from[PATH_MAX + 64];
    strcpy(from, path_to("alpha"));
    move_headers(from, path_to("moved"));
    void *handle = dlopen(path_to("moved"), RTLD_NOW);
    assert_non_null(handle);
    void (*first)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(handle, "alpha_first");
    const struct module *module = modules_get(module_of(frame_in(first)));
    assert_string_equal(module->path, path_to("moved"));
    assert_int_equal(module->build_id_bytes, 3);
    expect_as_mapped(module);
    dlclose(handle);
    unwind_after_unload();
}

static bool must_stop; /* atomic */

static void *walk_all_the_time(void *unused)
{
    (void)unused;
    unsigned long n_wrong = 0, n_walks = 0;
    find_bounds();
    take();
    unsigned n_expected = n_frames;
    uint64_t expected = frames[n_frames - 2];
    while (!__atomic_load_n(&must_stop, __ATOMIC_RELAXED) || n_walks < 100) {
        take();
        n_wrong += n_frames != n_expected || frames[n_frames - 2] != expected;
        n_walks++;
    }
    return (void *)n_wrong;
}

static void *load_all_the_time(void *name)
{
    unsigned long n_wrong = 0;
    find_bounds();
    for (int round = 0; round < 150; round++) {
        struct plugin plugin = open_plugin(name);
        uint64_t frame = frame_in(plugin.first);
        const struct module *module = modules_get(FRAME_MODULE(frame));
        n_wrong += !module || !strstr(module->path, name);
        dlclose(plugin.handle);
        unwind_after_unload();
    }
    return (void *)n_wrong;
}

/* One loader, for between another's dlclose and its unwind_after_unload a stack through what took
 * the place would be named by the old rules; real programs' frames there are as rare. */
static void threads_walk_while_plugins_come_and_go(void **state)
{
    (void)state;
    enum { WALKERS = 3 };
    pthread_t walkers[WALKERS], loader;
    void *n_wrong;
    for (int i = 0; i < WALKERS; i++)
        assert_int_equal(pthread_create(&walkers[i], NULL, walk_all_the_time, NULL), 0);
    assert_int_equal(pthread_create(&loader, NULL, load_all_the_time, "alpha"), 0);
    pthread_join(loader, &n_wrong);
    assert_null(n_wrong);
    __atomic_store_n(&must_stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WALKERS; i++) {
        pthread_join(walkers[i], &n_wrong);
        assert_null(n_wrong);
    }
}

static int set_up(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    char template[PATH_MAX];
    snprintf(template, sizeof(template), "%s/test_modules.XXXXXX", base);
    if (!mkdtemp(template) || !realpath(template, directory))
        return -1;
    build_plugin("alpha", "a1fa01");
    build_plugin("gamma", "9a33a0");
    build_plugin("delta", "de17a0");
    find_bounds();
    return region_open(1 << 20, 1 << 22) && unwind_open() ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    const char *const names[] = {"alpha", "gamma", "delta", "moved"};
    for (int i = 0; i < 4; i++)
        unlink(path_to(names[i]));
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_main_program_is_number_one),
        cmocka_unit_test(unknown_ids_give_nothing),
        cmocka_unit_test(all_are_as_the_kernel_maps_them),
        cmocka_unit_test(the_vdso_has_its_name),
        cmocka_unit_test(data_and_the_heap_are_no_modules),
        cmocka_unit_test(build_ids_are_the_files),
        cmocka_unit_test(a_relative_name_becomes_absolute),
        cmocka_unit_test(program_headers_are_found_where_patchelf_moves_them),
        cmocka_unit_test(plugins_at_one_address_are_told_apart),
        cmocka_unit_test(an_unannounced_change_is_noticed_at_the_next_new_address),
        cmocka_unit_test(a_thousand_rounds_of_plugins_add_no_more_than_places),
        cmocka_unit_test(threads_walk_while_plugins_come_and_go),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
