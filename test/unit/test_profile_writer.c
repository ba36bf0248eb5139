/* SPDX-License-Identifier: MIT
 * The writer, by reading back what it wrote and by looking at the bytes on the wire. */
#include "test/unit/profile_fixture.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/text.h"

static const uint8_t build_id[] = {0xAB, 0xCD, 0xEF, 0x01};

static struct profile_writer *begin(struct memory_sink *memory)
{
    *memory = (struct memory_sink){.sink.write = memory_write};
    struct profile_writer *writer = profile_begin(&memory->sink, &heap_head);
    assert_non_null(writer);
    return writer;
}

static void add_program(struct profile_writer *writer)
{
    const struct profile_mapping mapping = {0x400000,           0x500000, 0x1000,
                                            "/nowhere/program", build_id, sizeof(build_id)};
    profile_add_mapping(writer, &mapping);
}

static void add_simple(struct profile_writer *writer, uint64_t frame, const char *key,
                       struct profile_text text)
{
    const int64_t values[] = {1, 2, 3, 4};
    struct profile_label label = {PROFILE_LABEL_TEXT, text_of(key), text, 0, 0};
    profile_add_sample(writer, &frame, 1, values, &label, 1);
}

static void a_profile_reads_back_as_it_was_written(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    const uint64_t frames[] = {frame_in(1, 0x400010), frame_in(0, 0x7f0000001234), 1};
    const int64_t values[] = {5, INT64_MAX, -1, 0};
    const struct profile_label labels[] = {text_label("tenant", "acme"),
                                           number_label("bytes", 48, "bytes"),
                                           text_label("nothing", ""), number_label("n", -7, "")};
    add_program(writer);
    profile_add_comment(writer, "sample_bytes=512", 16);
    profile_add_sample(writer, frames, 3, values, labels, 4);
    profile_add_comment(writer, "lost=0", 6);
    assert_int_equal(profile_end(writer), 0);

    struct profile_data *profile = read_sink(&memory);
    assert_int_equal(profile->n_value_types, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(profile->value_types[i].type, heap_types[i].type);
        assert_string_equal(profile->value_types[i].unit, heap_types[i].unit);
    }
    assert_string_equal(profile->default_type, "inuse_space");
    assert_string_equal(profile->period_type.type, "space");
    assert_int_equal(profile->period, 524288);
    assert_int_equal(profile->time_nanos, heap_head.time_nanos);
    assert_int_equal(profile->duration_nanos, heap_head.duration_nanos);
    assert_string_equal(profile_comment(profile, "sample_bytes"), "512");
    assert_string_equal(profile_comment(profile, "lost"), "0");

    assert_int_equal(profile->n_mappings, 1);
    assert_int_equal(profile->mappings[0].start, 0x400000);
    assert_int_equal(profile->mappings[0].limit, 0x500000);
    assert_int_equal(profile->mappings[0].offset, 0x1000);
    assert_string_equal(profile->mappings[0].file, "/nowhere/program");
    assert_string_equal(profile->mappings[0].build_id, "abcdef01");
    assert_false(profile->mappings[0].has_functions);

    assert_int_equal(profile->n_samples, 1);
    const struct read_sample *sample = &profile->samples[0];
    assert_memory_equal(sample->values, values, sizeof(values));
    assert_int_equal(sample->n_locations, 3);
    assert_int_equal(sample->locations[0]->address, 0x400010);
    assert_ptr_equal(sample->locations[0]->mapping, &profile->mappings[0]);
    assert_int_equal(sample->locations[1]->address, 0x7f0000001234);
    assert_null(sample->locations[1]->mapping);
    assert_int_equal(sample->n_labels, 3); /* an empty text is no label */
    assert_string_equal(sample_label(sample, "tenant")->text, "acme");
    assert_null(sample_label(sample, "bytes")->text);
    assert_int_equal(sample_label(sample, "bytes")->number, 48);
    assert_string_equal(sample_label(sample, "bytes")->unit, "bytes");
    assert_int_equal(sample_label(sample, "n")->number, -7);
    profile_free(profile);
    free(memory.bytes);
}

static void pseudo_frames_are_functions_without_an_address(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    const uint64_t frames[] = {1, 2, 3};
    const int64_t values[4] = {0};
    char buffer[LOCATION_NAME_BYTES];
    profile_add_sample(writer, frames, 3, values, NULL, 0);
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    const struct read_location *const *locations = profile->samples[0].locations;
    assert_string_equal(location_name(locations[0], 0, buffer), "[truncated]");
    assert_string_equal(location_name(locations[1], 0, buffer), "[other stacks]");
    assert_string_equal(location_name(locations[2], 0, buffer), "0x3");
    assert_int_equal(locations[0]->address, 0);
    assert_int_equal(locations[1]->address, 0);
    assert_int_equal(profile->n_functions, 2);
    profile_free(profile);
    free(memory.bytes);
}

static void a_profile_without_samples_is_valid(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    assert_int_equal(profile->n_samples, 0);
    assert_int_equal(profile->n_value_types, 4);
    profile_free(profile);
    free(memory.bytes);
}

static void a_frame_of_an_unknown_mapping_has_no_mapping(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    add_program(writer);
    add_simple(writer, frame_in(2, 0x400010), "k", text_of("v"));
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    assert_null(profile->samples[0].locations[0]->mapping);
    profile_free(profile);
    free(memory.bytes);
}

/* Stacks that share their outermost frames take a short cut: all lengths after all lengths. */
static void stacks_that_share_frames_keep_their_own(void **state)
{
    (void)state;
    enum { N = 6 };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    uint64_t base[N];
    const int64_t values[4] = {0};
    for (int i = 0; i < N; i++)
        base[i] = frame_in(0, 0x1000 + (unsigned)i);
    for (int shared = 0; shared <= N; shared++)
        for (int n = 0; n <= N; n++) { /* the n innermost replaced, then the `shared` outermost */
            uint64_t stack[N];
            memcpy(stack, base, sizeof(base));
            for (int i = 0; i < n; i++)
                stack[i] = frame_in(0, 0x2000 + (unsigned)(shared * 100 + n * 10 + i));
            profile_add_sample(writer, stack, N, values, NULL, 0);
            profile_add_sample(writer, base + N - shared, (size_t)shared, values, NULL, 0);
        }
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    const struct read_sample *sample = profile->samples;
    for (int shared = 0; shared <= N; shared++)
        for (int n = 0; n <= N; n++, sample += 2) {
            assert_int_equal(sample[0].n_locations, N);
            for (int i = 0; i < N; i++)
                assert_int_equal(sample[0].locations[i]->address,
                                 i < n ? 0x2000 + shared * 100 + n * 10 + i : 0x1000 + i);
            assert_int_equal(sample[1].n_locations, shared);
            for (int i = 0; i < shared; i++)
                assert_int_equal(sample[1].locations[i]->address, 0x1000 + N - shared + i);
        }
    profile_free(profile);
    free(memory.bytes);
}

static void bad_bytes_become_valid_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        size_t n;
        const char *out;
    } table[] = {
        {"plain", 5, "plain"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb9", 9, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb9"},
        {"\x01\x7f\n", 3, "\x01\x7f\n"},
        {"a\0b", 3, "a\\x00b"},
        {"\xff", 1, "\\xff"},
        {"\x80", 1, "\\x80"},
        {"\xc3", 1, "\\xc3"},
        {"\xc3(", 2, "\\xc3("},
        {"\xc0\x80", 2, "\\xc0\\x80"},
        {"\xc1\xbf", 2, "\\xc1\\xbf"},
        {"\xe0\x9f\xbf", 3, "\\xe0\\x9f\\xbf"},
        {"\xe0\xa0\x80", 3, "\xe0\xa0\x80"},
        {"\xed\x9f\xbf", 3, "\xed\x9f\xbf"},
        {"\xed\xa0\x80", 3, "\\xed\\xa0\\x80"},
        {"\xed\xbf\xbf", 3, "\\xed\\xbf\\xbf"},
        {"\xee\x80\x80", 3, "\xee\x80\x80"},
        {"\xe2\x82", 2, "\\xe2\\x82"},
        {"\xe2\x82z", 3, "\\xe2\\x82z"},
        {"\xf0\x8f\xbf\xbf", 4, "\\xf0\\x8f\\xbf\\xbf"},
        {"\xf0\x90\x80\x80", 4, "\xf0\x90\x80\x80"},
        {"\xf4\x8f\xbf\xbf", 4, "\xf4\x8f\xbf\xbf"},
        {"\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"},
        {"\xf5\x80\x80\x80", 4, "\\xf5\\x80\\x80\\x80"},
        {"\xf0\x9f\x90", 3, "\\xf0\\x9f\\x90"},
        {"ok\xf0\x9f\x90\xb9\xf0", 7, "ok\xf0\x9f\x90\xb9\\xf0"},
    };
    enum { N = sizeof(table) / sizeof(table[0]) };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    for (size_t i = 0; i < N; i++) {
        char *exact = malloc(table[i].n); /* so that ASan sees a read past the end */
        memcpy(exact, table[i].in, table[i].n);
        add_simple(writer, 100 + i, "key", (struct profile_text){exact, table[i].n});
        free(exact);
    }
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    for (size_t i = 0; i < N; i++)
        assert_string_equal(profile->samples[i].labels[0].text, table[i].out);
    profile_free(profile);
    free(memory.bytes);
}

static int compare_fields(const void *a, const void *b)
{
    const struct wire_field *left = a, *right = b;
    size_t n = left->n_bytes < right->n_bytes ? left->n_bytes : right->n_bytes;
    int order = memcmp(left->bytes, right->bytes, n);
    return order ? order : (left->n_bytes > right->n_bytes) - (left->n_bytes < right->n_bytes);
}

static void the_string_table_has_every_text_once_and_starts_empty(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < N; i++) {
            char text[32];
            snprintf(text, sizeof(text), i % 2 ? "value-%u" : "%u\xff", i);
            add_simple(writer, 100, "key", text_of(text));
        }
    add_simple(writer, 100, "key", text_of("0\\xff")); /* what the bad bytes became */
    assert_int_equal(profile_end(writer), 0);
    size_t n_plain, n_strings = 0;
    uint8_t *plain = gunzip(&memory, &n_plain);
    const uint8_t *at = plain;
    struct wire_field *strings = calloc(2 * N, sizeof(*strings)), field;
    while (wire_next(&at, plain + n_plain, &field))
        if (field.number == 6) {
            assert_true(n_strings < 2 * N);
            strings[n_strings++] = field;
        }
    assert_int_equal(strings[0].n_bytes, 0);
    assert_true(n_strings > N);
    qsort(strings, n_strings, sizeof(*strings), compare_fields);
    for (size_t i = 1; i < n_strings; i++)
        assert_true(compare_fields(&strings[i - 1], &strings[i]) < 0);
    free(strings);
    free(plain);
    free(memory.bytes);
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

/* So many texts of one length that some share the 32 bits the table keeps of their hashes. */
static void texts_of_equal_hash_are_told_apart(void **state)
{
    (void)state;
    enum { N = 300000 };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    uint32_t *hashes = malloc(N * sizeof(*hashes));
    char text[16];
    size_t n_equal = 0;
    for (unsigned i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%08u", i);
        hashes[i] = (uint32_t)hash_bytes(text, 8);
        add_simple(writer, 100, "key", text_of(text));
    }
    assert_int_equal(profile_end(writer), 0);
    qsort(hashes, N, sizeof(*hashes), compare_numbers);
    for (size_t i = 1; i < N; i++)
        n_equal += hashes[i] == hashes[i - 1];
    assert_true(n_equal > 0);
    struct profile_data *profile = read_sink(&memory);
    for (unsigned i = 0; i < N; i++) {
        snprintf(text, sizeof(text), "%08u", i);
        assert_string_equal(profile->samples[i].labels[0].text, text);
    }
    profile_free(profile);
    free(hashes);
    free(memory.bytes);
}

/* Checks one message of the id-bearing kinds: its first field is its id, one more than the last. */
static void check_id(const struct wire_field *message, uint64_t *last)
{
    const uint8_t *at = message->bytes;
    struct wire_field field;
    assert_true(wire_next(&at, message->bytes + message->n_bytes, &field));
    assert_int_equal(field.number, 1);
    assert_int_equal(field.value, *last + 1);
    *last = field.value;
}

static void ids_count_up_from_one_in_the_order_of_emission(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    const int64_t values[4] = {0};
    add_program(writer);
    add_program(writer);
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t frames[] = {frame_in(i % 3, 0x400000 + i * 7919 % 4096), 1 + i % 2};
        profile_add_sample(writer, frames, 2, values, NULL, 0);
        if (i == 2500)
            add_program(writer);
    }
    assert_int_equal(profile_end(writer), 0);
    size_t n_plain;
    uint64_t last[6] = {0};
    uint8_t *plain = gunzip(&memory, &n_plain);
    const uint8_t *at = plain;
    struct wire_field field;
    while (wire_next(&at, plain + n_plain, &field))
        if (field.number >= 3 && field.number <= 5)
            check_id(&field, &last[field.number]);
    assert_int_equal(last[3], 3);
    assert_true(last[4] > 4096);
    assert_int_equal(last[5], 2);
    free(plain);
    free(memory.bytes);
}

static void repeated_numbers_are_packed(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    size_t n_plain, n_seen = 0;
    add_simple(writer, 7, "k", text_of("v"));
    profile_add_comment(writer, "c", 1);
    assert_int_equal(profile_end(writer), 0);
    uint8_t *plain = gunzip(&memory, &n_plain);
    const uint8_t *at = plain, *inner;
    struct wire_field field, part;
    while (wire_next(&at, plain + n_plain, &field)) {
        if (field.number == 13) {
            assert_int_equal(field.type, 2);
            n_seen++;
        }
        inner = field.bytes;
        while (field.number == 2 && wire_next(&inner, field.bytes + field.n_bytes, &part)) {
            assert_int_equal(part.type, 2);
            n_seen++;
        }
    }
    assert_int_equal(n_seen, 4); /* comment, location ids, values, label */
    free(plain);
    free(memory.bytes);
}

static void huge_texts_and_stacks_go_through(void **state)
{
    (void)state;
    enum { N_TEXT = 300000, N_FRAMES = 70000 };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    char *text = malloc(N_TEXT);
    uint64_t *frames = malloc(N_FRAMES * sizeof(*frames));
    const int64_t values[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < N_TEXT; i++)
        text[i] = (char)(i * 31 % 251 + 1);
    for (size_t i = 0; i < N_FRAMES; i++)
        frames[i] = 0x10000 + i;
    profile_add_comment(writer, text, N_TEXT);
    profile_add_sample(writer, frames, N_FRAMES, values, NULL, 0);
    assert_int_equal(profile_end(writer), 0);
    struct profile_data *profile = read_sink(&memory);
    assert_true(strlen(profile->comments[0]) > N_TEXT);
    assert_int_equal(profile->samples[0].n_locations, N_FRAMES);
    for (size_t i = 0; i < N_FRAMES; i++)
        assert_int_equal(profile->samples[0].locations[i]->address, 0x10000 + i);
    profile_free(profile);
    free(frames);
    free(text);
    free(memory.bytes);
}

/* 100,000 samples of 30 frames with 3 labels: all there, in at most 8 MiB of private memory. */
static void a_big_profile_needs_little_memory_and_keeps_its_sums(void **state)
{
    (void)state;
    enum { N = 100000, DEPTH = 30, ADDRESSES = 100000 };
    struct memory_sink memory;
    struct profile_writer *writer = begin(&memory);
    int64_t sum = 0;
    uint64_t frames[DEPTH], random = 1;
    memory.watched = writer;
    add_program(writer);
    for (int64_t i = 0; i < N; i++) {
        char tenant[32];
        int64_t values[] = {1, i, 1, i * 3};
        for (int d = 0; d < (i % 50 ? 6 : DEPTH); d++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            frames[d] = frame_in(1, 0x400000 + (random >> 33) % ADDRESSES);
        }
        snprintf(tenant, sizeof(tenant), "tenant-%d", (int)(i % 3000));
        struct profile_label labels[] = {text_label("thread_name", i % 2 ? "even" : "odd"),
                                         text_label("tenant", tenant),
                                         number_label("bytes", 16 << i % 8, "bytes")};
        profile_add_sample(writer, frames, DEPTH, values, labels, 3);
        sum += i * 3;
    }
    assert_int_equal(profile_end(writer), 0);
    assert_true(memory.peak_bytes > 0 && memory.peak_bytes <= 8 << 20);
    struct profile_data *profile = read_sink(&memory);
    assert_int_equal(profile->n_samples, N);
    assert_in_range(profile->n_locations, ADDRESSES * 9 / 10, ADDRESSES);
    for (size_t i = 0; i < N; i++) {
        sum -= profile->samples[i].values[3];
        assert_int_equal(profile->samples[i].n_labels, 3);
    }
    assert_int_equal(sum, 0);
    profile_free(profile);
    free(memory.bytes);
}

static size_t mapped_pages(void)
{
    unsigned long n_pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &n_pages), 1);
    fclose(file);
    return n_pages;
}

static int write_some(struct profile_sink *sink)
{
    const int64_t values[] = {1, 2, 3, 4};
    struct profile_writer *writer = profile_begin(sink, &heap_head);
    if (!writer)
        return -ENOMEM;
    add_program(writer);
    for (uint64_t i = 0; i < 8000; i++) {
        char text[16] = {0};
        uint64_t frames[] = {frame_in(1, 0x400000 + i), 0x5000 + i * 12345 % 77777};
        memcpy(text, &i, 3);
        struct profile_label labels[] = {{PROFILE_LABEL_TEXT, {"key", 3}, {text, 9}, 0, 0},
                                         symbol_label("start", frame_in(1, 0x400000 + i % 10))};
        profile_add_sample(writer, frames, 2, values, labels, 2);
    }
    return profile_end(writer);
}

static void the_first_error_of_the_sink_sticks_and_nothing_stays_mapped(void **state)
{
    (void)state;
    struct memory_sink whole = {.sink.write = memory_write};
    assert_int_equal(write_some(&whole.sink), 0);
    assert_true(whole.n_writes > 3);
    size_t n_before = mapped_pages();
    for (int fail_at = 1; fail_at <= whole.n_writes; fail_at++) {
        struct memory_sink memory = {.sink.write = memory_write, .fail_at = fail_at};
        assert_int_equal(write_some(&memory.sink), -28);
        assert_int_equal(memory.n_writes, fail_at);
        free(memory.bytes);
    }
    /* The test's own malloc may map some; the writer's mappings are over 300 KiB each time. */
    assert_true(mapped_pages() < n_before + 256);
    free(whole.bytes);
}

static int count_only(struct profile_sink *sink, const void *bytes, size_t n_bytes)
{
    (void)sink;
    (void)bytes;
    (void)n_bytes;
    return 0;
}

/* In a child: the limit on address space lets the first so many bytes through. */
static int write_with_memory(size_t n_bytes)
{
    struct profile_sink sink = {count_only};
    struct rlimit limit = {mapped_pages() * 4096 + n_bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        return 1;
    int error = write_some(&sink);
    return error == 0 ? 2 : error == -ENOMEM ? 3 : 4;
}

static void running_out_of_memory_anywhere_is_an_error_and_no_crash(void **state)
{
    (void)state;
    bool did_fail = false, did_pass = false;
    for (size_t n_bytes = 0; !did_pass && n_bytes < 32u << 20; n_bytes += 64 * 1024) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(write_with_memory(n_bytes));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_in_range(WEXITSTATUS(status), 2, 3);
        did_pass = WEXITSTATUS(status) == 2;
        did_fail |= WEXITSTATUS(status) == 3;
    }
    assert_true(did_fail && did_pass);
}

static void too_many_value_types_are_refused(void **state)
{
    (void)state;
    struct profile_value_type types[17];
    for (int i = 0; i < 17; i++)
        types[i] = (struct profile_value_type){"type", "unit"};
    struct profile_head head = {.value_types = types, .n_value_types = 17};
    struct memory_sink memory = {.sink.write = memory_write};
    struct profile_writer *writer = profile_begin(&memory.sink, &head);
    assert_non_null(writer);
    assert_int_equal(profile_end(writer), -EINVAL);
    free(memory.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_reads_back_as_it_was_written),
        cmocka_unit_test(pseudo_frames_are_functions_without_an_address),
        cmocka_unit_test(a_profile_without_samples_is_valid),
        cmocka_unit_test(a_frame_of_an_unknown_mapping_has_no_mapping),
        cmocka_unit_test(stacks_that_share_frames_keep_their_own),
        cmocka_unit_test(bad_bytes_become_valid_utf8),
        cmocka_unit_test(the_string_table_has_every_text_once_and_starts_empty),
        cmocka_unit_test(texts_of_equal_hash_are_told_apart),
        cmocka_unit_test(ids_count_up_from_one_in_the_order_of_emission),
        cmocka_unit_test(repeated_numbers_are_packed),
        cmocka_unit_test(huge_texts_and_stacks_go_through),
        cmocka_unit_test(a_big_profile_needs_little_memory_and_keeps_its_sums),
        cmocka_unit_test(the_first_error_of_the_sink_sticks_and_nothing_stays_mapped),
        cmocka_unit_test(running_out_of_memory_anywhere_is_an_error_and_no_crash),
        cmocka_unit_test(too_many_value_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
