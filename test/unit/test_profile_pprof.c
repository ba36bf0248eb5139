/* SPDX-License-Identifier: MIT
 * Go's own pprof as the judge of what the writer writes. Skipped where there is no go. */
#include "test/unit/profile_fixture.h"

#include "encoder/file.h"

static char *path, *base_path;

enum { OUTPUT_BYTES = 1 << 16 };

/* What `go tool pprof <options> <files>` prints, stdout and stderr; fails unless it exits 0. */
static const char *pprof(const char *options, const char *files)
{
    static char output[OUTPUT_BYTES];
    char command[1024];
    snprintf(command, sizeof(command), "go tool pprof -symbolize=none %s %s 2>&1", options, files);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    output[fread(output, 1, sizeof(output) - 1, pipe)] = '\0';
    if (pclose(pipe) != 0)
        fail_msg("%s: %s", command, output);
    return output;
}

static void expect(const char *output, const char *line)
{
    if (!strstr(output, line))
        fail_msg("no \"%s\" in:\n%s", line, output);
}

static void skip_without_go(void)
{
    if (system("go version >/dev/null 2>&1") == 0)
        return;
    print_message("there is no go on PATH: pprof was not asked\n");
    skip();
}

/* The function at the address of the mapping of this very program that has it. */
static uint64_t add_own_mapping(struct profile_writer *writer, uint64_t address)
{
    char line[1024], file[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t frame = 0;
    assert_non_null(maps);
    while (!frame && fgets(line, sizeof(line), maps)) {
        unsigned long start, limit, offset;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511s", &start, &limit, &offset, file) != 4 ||
            address < start || address >= limit)
            continue;
        struct profile_mapping mapping = {start, limit, offset, file, NULL, 0};
        profile_add_mapping(writer, &mapping);
        frame = frame_in(1, address);
    }
    fclose(maps);
    assert_true(frame != 0);
    return frame;
}

__attribute__((noinline, used)) static int make_a_leak(int n)
{
    __asm__ volatile("");
    return n + 1;
}

__attribute__((noinline, used)) static int serve_a_request(int n)
{
    __asm__ volatile("");
    return n + 2;
}

static void write_profile(const char *to, int64_t n_acme_bytes)
{
    struct file_sink file;
    assert_int_equal(file_sink_open(&file, to), 0);
    struct profile_writer *writer = profile_begin(&file.sink, &heap_head);
    assert_non_null(writer);
    uint64_t leak = add_own_mapping(writer, (uint64_t)(uintptr_t)make_a_leak + 1);
    uint64_t serve = frame_in(1, (uint64_t)(uintptr_t)serve_a_request + 1);
    const uint64_t stack[] = {leak, serve, 1}, other[] = {2};
    const int64_t acme[] = {10, n_acme_bytes, 10, n_acme_bytes}, globex[] = {2, 2048, 1, 1024};
    const int64_t rest[] = {1, 100, 1, 100};
    const struct profile_label acme_labels[] = {text_label("tenant", "acme"),
                                                number_label("bytes", 1024, "bytes")};
    const struct profile_label globex_labels[] = {text_label("tenant", "glo\xff"
                                                                       "bex"),
                                                  symbol_label("thread_start", serve)};
    profile_add_sample(writer, stack, 3, acme, acme_labels, 2);
    profile_add_sample(writer, stack, 3, globex, globex_labels, 2);
    profile_add_sample(writer, other, 1, rest, NULL, 0);
    profile_add_comment(writer, "sample_bytes=524288", 19);
    assert_int_equal(profile_end(writer), 0);
    assert_int_equal(file_sink_commit(&file), 0);
}

static void top_shows_functions_and_the_default_type(void **state)
{
    (void)state;
    skip_without_go();
    const char *output = pprof("-top -unit=B", path);
    expect(output, "Type: inuse_space");
    expect(output, "Duration: 90s");
    expect(output, "11364B total");
    expect(output, "make_a_leak");
    expect(output, "serve_a_request");
    expect(output, "[other stacks]");
    expect(pprof("-top -sample_index=alloc_objects", path), "13 total");
}

static void tags_show_labels_with_their_units(void **state)
{
    (void)state;
    skip_without_go();
    const char *output = pprof("-tags -unit=B", path);
    expect(output, "tenant: Total");
    expect(output, "10240"); /* Go 1.19 says 10240.0B */
    expect(output, "%): acme");
    expect(output, "glo\\xffbex");
    expect(output, "thread_start: Total");
    expect(output, "serve_a_request");
    expect(output, "bytes: Total");
    expect(pprof("-top -unit=B -tagfocus=acme", path), "10240B, 90.11% of 11364B");
}

static void traces_show_stacks_under_their_labels(void **state)
{
    (void)state;
    skip_without_go();
    const char *output = pprof("-traces -unit=B", path);
    expect(output, "bytes:  1kB");
    expect(output, "tenant:  acme");
    expect(output, "[truncated]");
}

static void raw_shows_everything_as_it_was_written(void **state)
{
    (void)state;
    skip_without_go();
    const char *output = pprof("-raw", path);
    expect(output, "PeriodType: space bytes");
    expect(output, "Period: 524288");
    expect(output, "Comment: sample_bytes=524288");
    expect(output,
           "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]");
    expect(output, "         10      10240         10      10240: 1 2 3");
    expect(output, "          2       2048          1       1024: 1 2 3");
    expect(output, "          1        100          1        100: 4");
    expect(output, "1: 0x"); /* a location, and the mapping below */
    expect(output, "test_profile_pprof");
    expect(output, "3: 0x0 [truncated]");
}

static void the_difference_of_two_profiles_is_taken(void **state)
{
    (void)state;
    skip_without_go();
    char files[1200];
    snprintf(files, sizeof(files), "-diff_base=%s %s", base_path, path);
    expect(pprof("-top -unit=B", files), "9240B");
}

static void a_profile_without_samples_is_accepted(void **state)
{
    (void)state;
    skip_without_go();
    struct file_sink file;
    char *empty = temporary_file("empty.pb.gz");
    assert_int_equal(file_sink_open(&file, empty), 0);
    assert_int_equal(profile_end(profile_begin(&file.sink, &heap_head)), 0);
    assert_int_equal(file_sink_commit(&file), 0);
    expect(pprof("-raw", empty), "Samples:");
    unlink(empty);
    free(empty);
}

static int begin(void **state)
{
    (void)state;
    path = temporary_file("judged.pb.gz");
    base_path = temporary_file("base.pb.gz");
    write_profile(path, 10240);
    write_profile(base_path, 1000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(base_path);
    free(path);
    free(base_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_shows_functions_and_the_default_type),
        cmocka_unit_test(tags_show_labels_with_their_units),
        cmocka_unit_test(traces_show_stacks_under_their_labels),
        cmocka_unit_test(raw_shows_everything_as_it_was_written),
        cmocka_unit_test(the_difference_of_two_profiles_is_taken),
        cmocka_unit_test(a_profile_without_samples_is_accepted),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
