/* SPDX-License-Identifier: MIT
 * Names from symbol tables: this program's own, made-up ELF files whose names are known, and the
 * same files cut at every length and with every byte changed. */
#include "test/unit/profile_fixture.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "encoder/names.h"
#include "encoder/symbols.h"

static struct symbols symbols;

/* A made-up file: two load segments, a build id, .symtab or .dynsym, one string section. */
enum { TEXT_OFFSET = 0x1000, TEXT_VADDR = 0x402000, START = 0x7f0000402000, MAX_SYMBOLS = 24 };

struct made_up {
    Elf64_Ehdr head;
    Elf64_Phdr segments[3];
    Elf64_Shdr sections[4];
    Elf64_Nhdr note;
    char owner[4];
    uint8_t id[4];
    Elf64_Sym table[MAX_SYMBOLS];
    char names[512];
};

struct expected_symbol {
    uint64_t at, n_bytes; /* from the start of the text */
    const char *name;
    unsigned char bind, type;
};

static const uint8_t made_up_id[4] = {0xde, 0xad, 0xbe, 0xef};

static void add_names(struct made_up *elf, const struct expected_symbol *list, size_t n_list)
{
    size_t n_names = 1;
    assert_true(n_list < MAX_SYMBOLS);
    for (size_t i = 0; i < n_list; i++) {
        assert_true(n_names + strlen(list[i].name) < sizeof(elf->names));
        elf->table[i + 1] = (Elf64_Sym){
            .st_name = list[i].name[0] ? (Elf64_Word)n_names : 0,
            .st_info = ELF64_ST_INFO(list[i].bind, list[i].type),
            .st_shndx = 1,
            .st_value = TEXT_VADDR + list[i].at,
            .st_size = list[i].n_bytes,
        };
        strcpy(elf->names + n_names, list[i].name);
        n_names += strlen(list[i].name) + 1;
    }
}

static struct made_up make_elf(uint32_t table_type, const struct expected_symbol *list,
                               size_t n_list)
{
    struct made_up elf = {
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                 .e_phoff = offsetof(struct made_up, segments),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 3,
                 .e_shoff = offsetof(struct made_up, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 4},
        .segments = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = 0x400000, .p_filesz = 0x1000},
                     {.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_offset = TEXT_OFFSET + 0x20,
                      .p_vaddr = TEXT_VADDR + 0x20,
                      .p_filesz = 0x3000},
                     {.p_type = PT_NOTE,
                      .p_offset = offsetof(struct made_up, note),
                      .p_filesz = 20}},
        .sections = {{0},
                     {.sh_type = SHT_PROGBITS},
                     {.sh_type = table_type,
                      .sh_offset = offsetof(struct made_up, table),
                      .sh_size = (n_list + 1) * sizeof(Elf64_Sym),
                      .sh_entsize = sizeof(Elf64_Sym),
                      .sh_link = 3},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(struct made_up, names),
                      .sh_size = sizeof(elf.names)}},
        .note = {4, 4, NT_GNU_BUILD_ID},
        .owner = "GNU",
    };
    memcpy(elf.id, made_up_id, sizeof(made_up_id));
    add_names(&elf, list, n_list);
    return elf;
}

/* In memory: thousands of versions of it are written. */
static int made_up_fd;
static char made_up_path[64];

static void write_elf(const void *bytes, size_t n_bytes)
{
    assert_int_equal(ftruncate(made_up_fd, 0), 0);
    assert_int_equal(pwrite(made_up_fd, bytes, n_bytes, 0), n_bytes);
}

static struct profile_mapping made_up_mapping(void)
{
    return (struct profile_mapping){START,        START + 0x4000, TEXT_OFFSET,
                                    made_up_path, made_up_id,     sizeof(made_up_id)};
}

/* "-" if no symbol covers the address. */
static const char *name_at(uint64_t at)
{
    static char name[SYMBOL_NAME_BYTES + 1];
    struct profile_mapping mapping = made_up_mapping();
    struct symbol_wanted wanted = {.address = START + at};
    if (!symbols_open(&symbols, &mapping))
        return "no file";
    symbols_find(&symbols, &wanted, 1);
    struct profile_text text = symbols_name(&symbols, &wanted);
    memcpy(name, text.bytes, text.n_bytes);
    name[text.n_bytes] = '\0';
    symbols_close(&symbols);
    return text.n_bytes ? name : "-";
}

static int n_open_fds(void)
{
    int n = 0;
    DIR *entries = opendir("/proc/self/fd");
    assert_non_null(entries);
    while (readdir(entries))
        n++;
    closedir(entries);
    return n;
}

static const struct expected_symbol simple[] = {
    {0x100, 0x10, "first", STB_GLOBAL, STT_FUNC},
    {0x120, 0x10, "second", STB_LOCAL, STT_FUNC},
    {0x130, 0, "sizeless", STB_GLOBAL, STT_FUNC},
    {0x140, 0x10, "an_object", STB_GLOBAL, STT_OBJECT},
    {0x150, 0x10, "a_label", STB_GLOBAL, STT_NOTYPE},
    {0x160, 0x10, "indirect", STB_GLOBAL, STT_GNU_IFUNC},
    {0x170, 0x10, "", STB_GLOBAL, STT_FUNC},
};
enum { N_SIMPLE = sizeof(simple) / sizeof(simple[0]) };

static void a_symbol_names_what_it_covers_and_nothing_else(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0xff), "-");
    assert_string_equal(name_at(0x100), "first");
    assert_string_equal(name_at(0x10f), "first");
    assert_string_equal(name_at(0x110), "-"); /* past the end: not the nearest before */
    assert_string_equal(name_at(0x11f), "-");
    assert_string_equal(name_at(0x120), "second");
    assert_string_equal(name_at(0x130), "-");
    assert_string_equal(name_at(0x145), "-");
    assert_string_equal(name_at(0x155), "-");
    assert_string_equal(name_at(0x16f), "indirect");
    assert_string_equal(name_at(0x175), "-");
    assert_string_equal(name_at(0x3fff), "-");
}

static void the_dynamic_table_serves_where_there_is_no_other(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_DYNSYM, simple, N_SIMPLE);
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x108), "first");
}

static void of_several_names_the_plainest_of_the_innermost_is_chosen(void **state)
{
    (void)state;
    const struct expected_symbol list[] = {
        {0x100, 0x10, "__libc_malloc", STB_GLOBAL, STT_FUNC},
        {0x100, 0x10, "malloc", STB_WEAK, STT_FUNC},
        {0x100, 0x10, "__malloc", STB_LOCAL, STT_FUNC},
        {0x200, 0x100, "outer", STB_GLOBAL, STT_FUNC},
        {0x240, 0x10, "outer_inner_part", STB_LOCAL, STT_FUNC},
        {0x300, 0x10, "_ZN1AC2Ev", STB_GLOBAL, STT_FUNC},
        {0x300, 0x10, "_ZN1AC1Ev", STB_GLOBAL, STT_FUNC},
        {0x310, 0x10, "longer", STB_GLOBAL, STT_FUNC},
        {0x310, 0x10, "short", STB_GLOBAL, STT_FUNC},
        {0x320, 0x10, "__create_2_1", STB_LOCAL, STT_FUNC},
        {0x320, 0x10, "create@@GLIBC_2.34", STB_GLOBAL, STT_FUNC},
    };
    struct made_up elf = make_elf(SHT_SYMTAB, list, sizeof(list) / sizeof(list[0]));
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x108), "malloc");
    assert_string_equal(name_at(0x23f), "outer");
    assert_string_equal(name_at(0x240), "outer_inner_part");
    assert_string_equal(name_at(0x250), "outer");
    assert_string_equal(name_at(0x300), "_ZN1AC1Ev");
    assert_string_equal(name_at(0x310), "short");
    assert_string_equal(name_at(0x320), "create");
}

static void a_file_of_another_build_gives_no_names(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    elf.id[3] ^= 1;
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "no file");
    elf.segments[2].p_type = PT_NULL; /* no build id at all */
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "no file");
    struct profile_mapping unknown = made_up_mapping();
    unknown.build_id_bytes = 0;
    assert_true(symbols_open(&symbols, &unknown)); /* nothing to compare with */
    symbols_close(&symbols);
}

/* As in separate debug files, where the segments' offsets lead nowhere. */
static void the_build_id_is_found_by_its_section_too(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    elf.segments[2].p_offset = offsetof(struct made_up, names);
    elf.sections[1] = (Elf64_Shdr){
        .sh_type = SHT_NOTE, .sh_offset = offsetof(struct made_up, note), .sh_size = 20};
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "first");
    elf.id[0] ^= 1;
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "no file");
}

static void a_part_of_a_segment_mapped_apart_is_found(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    struct elf_file file;
    uint64_t shift;
    write_elf(&elf, sizeof(elf));
    assert_true(elf_open(&file, made_up_path));
    assert_true(elf_address_shift(&file, START, TEXT_OFFSET, &shift));
    assert_int_equal(START + shift, TEXT_VADDR);
    assert_true(elf_address_shift(&file, START, TEXT_OFFSET + 0x2000, &shift));
    assert_int_equal(START + shift, TEXT_VADDR + 0x2000);
    assert_false(elf_address_shift(&file, START, TEXT_OFFSET + 0x4000, &shift));
    assert_false(elf_address_shift(&file, START, 0, &shift)); /* not an executable segment */
    elf_close(&file);
}

static void what_is_no_such_file_gives_no_names(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    const char *const paths[] = {"/missing", "relative", "[vdso]", "", "/", "/dev/zero", NULL};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct profile_mapping mapping = made_up_mapping();
        mapping.file = paths[i];
        assert_false(symbols_open(&symbols, &mapping));
    }
    elf.head.e_ident[EI_CLASS] = ELFCLASS32;
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "no file");
    elf.head.e_ident[EI_CLASS] = ELFCLASS64;
    elf.head.e_ident[EI_DATA] = ELFDATA2MSB;
    write_elf(&elf, sizeof(elf));
    assert_string_equal(name_at(0x100), "no file");
    struct profile_mapping mapping = made_up_mapping();
    char *fifo = temporary_file("fifo");
    mapping.file = fifo;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_false(symbols_open(&symbols, &mapping)); /* and did not wait for a writer */
    unlink(fifo);
    free(fifo);
}

/* Looks everywhere; what is found must be a name that could be there. */
static void look_around(void)
{
    struct symbol_wanted wanted[64];
    struct profile_mapping mapping = made_up_mapping();
    mapping.build_id_bytes = 0; /* go on where a changed id would end it */
    if (!symbols_open(&symbols, &mapping))
        return;
    for (size_t i = 0; i < 64; i++)
        wanted[i] = (struct symbol_wanted){.address = START + 0xf0 + 4 * i};
    symbols_find(&symbols, wanted, 64);
    for (size_t i = 0; i < 64; i++) {
        struct profile_text name = symbols_name(&symbols, &wanted[i]);
        assert_true(name.n_bytes < SYMBOL_NAME_BYTES);
        assert_null(memchr(name.bytes, 0, name.n_bytes));
    }
    symbols_close(&symbols);
}

static void a_file_cut_at_any_length_never_crashes(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    int n_fds = n_open_fds();
    for (size_t n = 0; n < sizeof(elf); n++) {
        write_elf(&elf, n);
        look_around();
    }
    assert_int_equal(n_open_fds(), n_fds);
}

static void a_file_with_any_byte_changed_never_crashes(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    uint8_t *bytes = (uint8_t *)&elf;
    const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    int n_fds = n_open_fds();
    for (size_t i = 0; i < offsetof(struct made_up, names) + 64; i++)
        for (size_t v = 0; v < sizeof(values); v++) {
            uint8_t old = bytes[i];
            bytes[i] = values[v];
            write_elf(&elf, sizeof(elf));
            look_around();
            bytes[i] = old;
        }
    assert_int_equal(n_open_fds(), n_fds);
}

/* Sums of offsets and sizes that wrap around to something small. */
static void fields_of_the_largest_numbers_never_crash(void **state)
{
    (void)state;
    const uint64_t values[] = {
        UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 63,        UINT64_MAX - 64,   INT64_MAX,
        1ull << 32, 0xffffffff,      sizeof(struct made_up), 0x8000000000000000};
    for (size_t i = 0; i + 8 <= offsetof(struct made_up, names); i += 4)
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
            memcpy((uint8_t *)&elf + i, &values[v], 8);
            write_elf(&elf, sizeof(elf));
            look_around();
        }
}

/* Every symbol covers everything: the number of comparisons is bounded. */
static void many_symbols_over_many_addresses_come_to_an_end(void **state)
{
    (void)state;
    enum { N_SYMBOLS = 20000, N_WANTED = 20000 };
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    elf.sections[2].sh_offset = sizeof(elf);
    elf.sections[2].sh_size = N_SYMBOLS * sizeof(Elf64_Sym);
    write_elf(&elf, sizeof(elf));
    for (uint64_t i = 0; i < N_SYMBOLS; i++) {
        Elf64_Sym symbol = {.st_name = 1,
                            .st_info = STT_FUNC,
                            .st_shndx = 1,
                            .st_value = TEXT_VADDR - i,
                            .st_size = 1 << 20};
        assert_int_equal(
            pwrite(made_up_fd, &symbol, sizeof(symbol), (off_t)(sizeof(elf) + i * sizeof(symbol))),
            sizeof(symbol));
    }
    struct profile_mapping mapping = made_up_mapping();
    struct symbol_wanted *wanted = calloc(N_WANTED, sizeof(*wanted));
    for (size_t i = 0; i < N_WANTED; i++)
        wanted[i].address = START + i;
    assert_true(symbols_open(&symbols, &mapping));
    symbols_find(&symbols, wanted, N_WANTED);
    assert_true(symbols.n_considered < N_SYMBOLS * (size_t)N_WANTED);
    assert_int_equal(wanted[0].start, TEXT_VADDR);
    symbols_close(&symbols);
    free(wanted);
}

/* The mapping of this process that has the address. */
static bool mapping_of_address(uint64_t address, struct profile_mapping *ret, char path[512])
{
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool did_find = false;
    while (!did_find && fgets(line, sizeof(line), maps)) {
        unsigned long start, limit, offset;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511s", &start, &limit, &offset, path) != 4)
            continue;
        *ret = (struct profile_mapping){start, limit, offset, path, NULL, 0};
        did_find = start <= address && address < limit;
    }
    fclose(maps);
    return did_find;
}

__attribute__((noinline, used)) static int a_static_function_of_this_test(int n)
{
    __asm__ volatile("");
    return n + 1;
}

static void functions_of_this_program_are_named(void **state)
{
    (void)state;
    char path[512];
    struct profile_mapping mapping;
    uint64_t here = (uint64_t)(uintptr_t)a_static_function_of_this_test;
    assert_true(mapping_of_address(here, &mapping, path));
    struct profile_text name = name_of_frame(&symbols, &mapping, here);
    assert_int_equal(name.n_bytes, strlen("a_static_function_of_this_test"));
    assert_memory_equal(name.bytes, "a_static_function_of_this_test", name.n_bytes);
    assert_int_equal(symbols.own.file.fd, -1);
}

static void an_address_without_a_symbol_is_described(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    write_elf(&elf, sizeof(elf));
    struct profile_mapping mapping = made_up_mapping();
    char expected[300];
    struct profile_text name = name_of_frame(&symbols, &mapping, START + 0x118);
    snprintf(expected, sizeof(expected), "%s+0x1118", strrchr(made_up_path, '/') + 1);
    assert_int_equal(name.n_bytes, strlen(expected));
    assert_memory_equal(name.bytes, expected, name.n_bytes);
    name = name_of_frame(&symbols, NULL, 0xabc123);
    assert_int_equal(name.n_bytes, 8);
    assert_memory_equal(name.bytes, "0xabc123", 8);
}

/* A stripped library whose separate debug file is installed has names its own table lacks. */
static void a_separate_debug_file_is_used(void **state)
{
    (void)state;
    char path[512];
    struct profile_mapping mapping;
    uint64_t in_libc = (uint64_t)(uintptr_t)gnu_get_libc_version; /* no sanitizer wraps it */
    assert_true(mapping_of_address(in_libc, &mapping, path));
    bool is_debug = symbols_open(&symbols, &mapping) && symbols.debug.file.fd >= 0;
    symbols_close(&symbols);
    if (!is_debug) {
        print_message("libc has no separate debug file here\n");
        skip();
    }
    struct profile_text name = name_of_frame(&symbols, &mapping, in_libc);
    assert_int_equal(name.n_bytes, strlen("gnu_get_libc_version"));
    assert_memory_equal(name.bytes, "gnu_get_libc_version", name.n_bytes);
}

/* Through the writer: names in the file, each looked up by its own mapping. */
static void the_writer_names_locations_and_symbol_labels(void **state)
{
    (void)state;
    struct made_up elf = make_elf(SHT_SYMTAB, simple, N_SIMPLE);
    write_elf(&elf, sizeof(elf));
    struct memory_sink memory = {.sink.write = memory_write};
    struct profile_writer *writer = profile_begin(&memory.sink, &heap_head);
    struct profile_mapping mapping = made_up_mapping();
    const int64_t values[4] = {0};
    char buffer[LOCATION_NAME_BYTES];
    const uint64_t frames[] = {frame_in(1, START + 0x12f), frame_in(1, START + 0x10f),
                               frame_in(1, START + 0x110), frame_in(1, START + 0x101),
                               frame_in(0, START + 0x101)};
    struct profile_label labels[] = {symbol_label("start", frame_in(1, START + 0x120)),
                                     symbol_label("other", frame_in(1, START + 0x110)),
                                     symbol_label("jit", frame_in(0, 0x1234))};
    profile_add_mapping(writer, &mapping);
    profile_add_sample(writer, frames, 5, values, labels, 3);
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    const struct read_sample *sample = profile->samples;
    assert_string_equal(location_name(sample->locations[0], 0, buffer), "second");
    assert_string_equal(location_name(sample->locations[1], 0, buffer), "first");
    assert_int_equal(sample->locations[2]->n_lines, 0);
    assert_non_null(strstr(location_name(sample->locations[2], 0, buffer), "+0x1110"));
    assert_ptr_equal(sample->locations[3]->lines[0].function,
                     sample->locations[1]->lines[0].function);
    assert_string_equal(sample->locations[3]->lines[0].function->system_name, "first");
    assert_int_equal(sample->locations[4]->n_lines, 0);
    assert_int_equal(profile->n_functions, 2);
    assert_string_equal(sample_label(sample, "start")->text, "second");
    assert_non_null(strstr(sample_label(sample, "other")->text, "+0x1110"));
    assert_string_equal(sample_label(sample, "jit")->text, "0x1234");
    profile_free(profile);
    free(memory.bytes);
}

/* Locations in no order, of three mappings of one file, some addresses of two functions' parts. */
static void many_locations_get_their_names_and_each_function_is_there_once(void **state)
{
    (void)state;
    enum { N_MAPPINGS = 3, N_ADDRESSES = 0x400, N = N_MAPPINGS * N_ADDRESSES, STRIDE = 1237 };
    const struct expected_symbol list[] = {
        {0x100, 0x200, "outer", STB_GLOBAL, STT_FUNC},
        {0x180, 0x10, "inner", STB_LOCAL, STT_FUNC},
        {0x200, 0x10, "inner", STB_LOCAL, STT_FUNC},
    };
    struct made_up elf = make_elf(SHT_SYMTAB, list, 3);
    write_elf(&elf, sizeof(elf));
    struct memory_sink memory = {.sink.write = memory_write};
    struct profile_writer *writer = profile_begin(&memory.sink, &heap_head);
    struct profile_mapping mapping = made_up_mapping();
    const int64_t values[4] = {0};
    for (int i = 0; i < N_MAPPINGS; i++)
        profile_add_mapping(writer, &mapping);
    for (uint64_t i = 0, at = 0; i < N; i++, at = (at + STRIDE) % N) {
        uint64_t frame = frame_in(1 + at % N_MAPPINGS, START + at / N_MAPPINGS);
        profile_add_sample(writer, &frame, 1, values, NULL, 0);
    }
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    assert_int_equal(profile->n_locations, N);
    assert_int_equal(profile->n_functions, N_MAPPINGS * 2);
    for (size_t i = 0; i < N; i++) {
        const struct read_location *location = &profile->locations[i];
        uint64_t at = location->address - START;
        bool is_outer = at >= 0x100 && at < 0x300;
        bool is_inner = (at >= 0x180 && at < 0x190) || (at >= 0x200 && at < 0x210);
        assert_int_equal(location->n_lines, is_outer);
        if (is_outer)
            assert_string_equal(location->lines[0].function->name, is_inner ? "inner" : "outer");
    }
    profile_free(profile);
    free(memory.bytes);
}

static int begin(void **state)
{
    (void)state;
    made_up_fd = memfd_create("made-up", MFD_CLOEXEC);
    snprintf(made_up_path, sizeof(made_up_path), "/proc/self/fd/%d", made_up_fd);
    return made_up_fd >= 0 ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return close(made_up_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_names_what_it_covers_and_nothing_else),
        cmocka_unit_test(the_dynamic_table_serves_where_there_is_no_other),
        cmocka_unit_test(of_several_names_the_plainest_of_the_innermost_is_chosen),
        cmocka_unit_test(a_file_of_another_build_gives_no_names),
        cmocka_unit_test(the_build_id_is_found_by_its_section_too),
        cmocka_unit_test(a_part_of_a_segment_mapped_apart_is_found),
        cmocka_unit_test(what_is_no_such_file_gives_no_names),
        cmocka_unit_test(a_file_cut_at_any_length_never_crashes),
        cmocka_unit_test(a_file_with_any_byte_changed_never_crashes),
        cmocka_unit_test(fields_of_the_largest_numbers_never_crash),
        cmocka_unit_test(many_symbols_over_many_addresses_come_to_an_end),
        cmocka_unit_test(functions_of_this_program_are_named),
        cmocka_unit_test(an_address_without_a_symbol_is_described),
        cmocka_unit_test(a_separate_debug_file_is_used),
        cmocka_unit_test(the_writer_names_locations_and_symbol_labels),
        cmocka_unit_test(many_locations_get_their_names_and_each_function_is_there_once),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
