/* SPDX-License-Identifier: MIT
 * The reader: every cut and every flipped bit of a real profile, profiles whose parts don't fit
 * together, files that are no profiles. */
#include "test/unit/profile_fixture.h"

#include <errno.h>

/* A message under construction, byte by byte: what the writer would never write. */
struct raw {
    uint8_t bytes[512];
    size_t n_bytes;
};

static void raw_number(struct raw *raw, unsigned field, uint64_t value)
{
    raw->bytes[raw->n_bytes++] = (uint8_t)(field << 3);
    for (; value >= 0x80; value >>= 7)
        raw->bytes[raw->n_bytes++] = (uint8_t)(value | 0x80);
    raw->bytes[raw->n_bytes++] = (uint8_t)value;
}

static void raw_bytes(struct raw *raw, unsigned field, const void *bytes, size_t n_bytes)
{
    assert_true(n_bytes < 0x80);
    raw->bytes[raw->n_bytes++] = (uint8_t)(field << 3 | 2);
    raw->bytes[raw->n_bytes++] = (uint8_t)n_bytes;
    memcpy(raw->bytes + raw->n_bytes, bytes, n_bytes);
    raw->n_bytes += n_bytes;
}

static void raw_text(struct raw *raw, const char *text)
{
    raw_bytes(raw, 6, text, strlen(text));
}

/* field { 1: a, 2: b }; 0 for none */
static void raw_pair(struct raw *raw, unsigned field, uint64_t a, uint64_t b)
{
    struct raw inner = {.n_bytes = 0};
    if (a)
        raw_number(&inner, 1, a);
    if (b)
        raw_number(&inner, 2, b);
    raw_bytes(raw, field, inner.bytes, inner.n_bytes);
}

static struct raw raw_profile(void)
{
    struct raw raw = {.n_bytes = 0};
    raw_text(&raw, "");
    raw_text(&raw, "space");
    raw_text(&raw, "bytes");
    raw_pair(&raw, 1, 1, 2);
    return raw;
}

static int read_raw(const struct raw *raw, char *error, struct profile_data **ret_profile)
{
    uint8_t *exact = malloc(raw->n_bytes); /* so that ASan sees a read past the end */
    memcpy(exact, raw->bytes, raw->n_bytes);
    int result = profile_read_bytes("raw", exact, raw->n_bytes, error, ret_profile);
    free(exact);
    return result;
}

static void expect_damaged(const struct raw *raw, const char *what)
{
    char error[PROFILE_ERROR_BYTES] = "";
    struct profile_data *profile = NULL;
    assert_int_equal(read_raw(raw, error, &profile), -EBADMSG);
    assert_null(profile);
    if (!strstr(error, what))
        fail_msg("\"%s\" does not say \"%s\"", error, what);
    assert_int_equal(strncmp(error, "raw: ", 5), 0);
    assert_null(strchr(error, '\n'));
}

static void expect_fine(const struct raw *raw)
{
    char error[PROFILE_ERROR_BYTES] = "";
    struct profile_data *profile = NULL;
    if (read_raw(raw, error, &profile))
        fail_msg("%s", error);
    profile_free(profile);
}

static void a_minimal_plain_profile_is_read(void **state)
{
    (void)state;
    struct raw raw = raw_profile();
    expect_fine(&raw);
}

static void parts_that_do_not_fit_together_are_named(void **state)
{
    (void)state;
    struct raw raw = raw_profile();
    raw_number(&raw, 14, 3);
    expect_damaged(&raw, "string 3 of 3");

    raw = raw_profile();
    raw_number(&raw, 9, UINT64_MAX); /* any time is fine */
    raw_number(&raw, 7, UINT64_MAX);
    expect_damaged(&raw, "string -1 of 3");

    raw = raw_profile();
    raw_pair(&raw, 1, 7, 0);
    expect_damaged(&raw, "string 7 of 3");

    raw = raw_profile();
    raw_pair(&raw, 11, 0, 9);
    expect_damaged(&raw, "string 9 of 3");

    raw = raw_profile();
    raw_number(&raw, 13, 4); /* a comment, unpacked */
    expect_damaged(&raw, "string 4 of 3");

    raw = raw_profile();
    raw_bytes(&raw, 2, "", 0);
    expect_damaged(&raw, "sample 0 has 0 values of 1");

    raw = raw_profile();
    raw_bytes(&raw, 2, "\x0a\x01\x05\x12\x01\x01", 6);
    expect_damaged(&raw, "sample 0 names location 5");

    raw = raw_profile();
    raw_bytes(&raw, 2, "\x12\x01\x01\x1a\x02\x08\x09", 7);
    expect_damaged(&raw, "string 9 of 3");

    raw = raw_profile();
    raw_pair(&raw, 4, 1, 2);
    expect_damaged(&raw, "location 1 names mapping 2");

    raw = raw_profile();
    raw_bytes(&raw, 4, "\x08\x01\x22\x02\x08\x03", 6);
    expect_damaged(&raw, "location 1 names function 3");

    raw = raw_profile();
    raw_pair(&raw, 5, 1, 8);
    expect_damaged(&raw, "string 8 of 3");

    const unsigned kinds[] = {3, 4, 5};
    for (size_t i = 0; i < 3; i++) {
        raw = raw_profile();
        raw_pair(&raw, kinds[i], 0, 0);
        expect_damaged(&raw, "id is 0");
        raw = raw_profile();
        raw_pair(&raw, kinds[i], 9, 0);
        raw_pair(&raw, kinds[i], 9, 0);
        expect_damaged(&raw, "twice");
    }
}

static void ids_may_be_any_numbers_in_any_order(void **state)
{
    (void)state;
    struct raw raw = {.n_bytes = 0};
    char error[PROFILE_ERROR_BYTES], buffer[LOCATION_NAME_BYTES];
    struct profile_data *profile;
    /* Strings last, samples before locations before functions. */
    raw_bytes(&raw, 2, "\x0a\x02\x63\x07\x12\x01\x05", 7); /* locations 99, 7; value 5 */
    raw_bytes(&raw, 4, "\x08\x63\x22\x02\x08\x32", 6);     /* location 99: function 50 */
    raw_bytes(&raw, 4, "\x08\x07\x10\x28\x18\x0a", 6);     /* location 7: mapping 40, address 10 */
    raw_pair(&raw, 5, 50, 3);
    raw_bytes(&raw, 3, "\x08\x28\x10\x08\x20\x64\x28\x04", 8); /* start 8, offset 100, file 4 */
    raw_pair(&raw, 1, 1, 2);
    const char *texts[] = {"", "space", "bytes", "main", "/opt/lib/app"};
    for (size_t i = 0; i < 5; i++)
        raw_text(&raw, texts[i]);
    assert_int_equal(read_raw(&raw, error, &profile), 0);
    const struct read_sample *sample = &profile->samples[0];
    assert_string_equal(location_name(sample->locations[0], 0, buffer), "main");
    assert_string_equal(location_name(sample->locations[1], 0, buffer), "app+0x66");
    assert_int_equal(profile_value_index(profile, NULL), 0);
    assert_int_equal(profile_value_index(profile, "space"), 0);
    assert_int_equal(profile_value_index(profile, "time"), -1);
    profile_free(profile);
}

static void what_is_no_profile_is_said_to_be_none(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *what;
    } table[] = {
        {"", 0, "empty"},
        {"heap profile: 1: 2 [3: 4] @ heapprofile\n", 40, "not a pprof profile"},
        {"<html><body>404</body></html>", 29, "not a pprof profile"},
        {"\x7f"
         "ELF\2\1\1",
         7, "not a pprof profile"},
        {"\x1f\x8b", 2, "ends too early"},
        {"\x1f\x8b\x08\xff\xff", 5, "damaged gzip data"},
        {"\x1f", 1, "not a pprof profile"},
        {"\x32\x01x", 3, "not a pprof profile"}, /* strings but no types */
        {"\x32\x01x\x0a\x00", 5, "first string is not empty"},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char error[PROFILE_ERROR_BYTES] = "";
        struct profile_data *profile = NULL;
        assert_true(profile_read_bytes("it", table[i].bytes, table[i].n, error, &profile) < 0);
        assert_null(profile);
        if (!strstr(error, table[i].what))
            fail_msg("\"%s\" does not say \"%s\"", error, table[i].what);
    }
}

static void files_that_cannot_be_read_are_named(void **state)
{
    (void)state;
    char error[PROFILE_ERROR_BYTES];
    struct profile_data *profile = NULL;
    assert_int_equal(profile_read("/missing/x.pb.gz", error, &profile), -ENOENT);
    assert_string_equal(error, "/missing/x.pb.gz: cannot open: No such file or directory");
    assert_int_equal(profile_read("/", error, &profile), -EISDIR);
    assert_int_equal(profile_read("/dev/null", error, &profile), -ENODATA);
    char *long_name = malloc(4000);
    memset(long_name, 'x', 3999);
    long_name[3999] = '\0';
    assert_int_equal(profile_read(long_name, error, &profile), -ENAMETOOLONG);
    assert_true(strlen(error) < PROFILE_ERROR_BYTES);
    assert_non_null(strstr(error, ": cannot open"));
    free(long_name);
    assert_null(profile);
}

/* A profile with everything in it, small enough for sweeps. */
static void write_sample_profile(struct memory_sink *memory)
{
    const int64_t values[] = {1, 200, 3, 40000};
    const struct profile_mapping mapping = {0x1000, 0x9000, 0, "/bin/x", (const uint8_t *)"\1\2",
                                            2};
    *memory = (struct memory_sink){.sink.write = memory_write};
    struct profile_writer *writer = profile_begin(&memory->sink, &heap_head);
    assert_non_null(writer);
    profile_add_mapping(writer, &mapping);
    profile_add_comment(writer, "sample_bytes=1", 14);
    for (uint64_t i = 0; i < 3; i++) {
        const uint64_t frames[] = {frame_in(1, 0x1000 + i), 0x777, 1};
        const struct profile_label labels[] = {text_label("tenant", i % 2 ? "acme" : "globex"),
                                               number_label("bytes", 32, "bytes")};
        profile_add_sample(writer, frames, 3, values, labels, 2);
    }
    assert_int_equal(profile_end(writer), 0);
}

/* Touches all that the reader promises; ASan watches. */
static uint64_t walk(const struct profile_data *profile)
{
    uint64_t sum = strlen(profile->default_type) + strlen(profile->period_type.unit);
    char buffer[LOCATION_NAME_BYTES];
    for (size_t i = 0; i < profile->n_comments; i++)
        sum += strlen(profile->comments[i]);
    for (size_t i = 0; i < profile->n_samples; i++) {
        const struct read_sample *sample = &profile->samples[i];
        for (size_t v = 0; v < profile->n_value_types; v++)
            sum += (uint64_t)sample->values[v] + strlen(profile->value_types[v].type);
        for (size_t l = 0; l < sample->n_locations; l++)
            sum += strlen(location_name(sample->locations[l], 0, buffer));
        for (size_t l = 0; l < sample->n_labels; l++)
            sum += strlen(sample->labels[l].key) + strlen(sample->labels[l].unit) +
                   (sample->labels[l].text ? strlen(sample->labels[l].text) : 0);
    }
    return sum;
}

/* 1 if it was read and walked, 0 if it was refused with a line of text. */
static int try_to_read(const uint8_t *bytes, size_t n_bytes)
{
    char error[PROFILE_ERROR_BYTES] = "";
    struct profile_data *profile = NULL;
    uint8_t *exact = malloc(n_bytes ? n_bytes : 1);
    memcpy(exact, bytes, n_bytes);
    int result = profile_read_bytes("swept", exact, n_bytes, error, &profile);
    free(exact);
    if (result == 0) {
        static volatile uint64_t seen; /* so that the walk is not optimized away */
        seen += walk(profile);
        profile_free(profile);
        return 1;
    }
    assert_true(result < 0);
    assert_null(profile);
    assert_true(strlen(error) > 10 && !strchr(error, '\n'));
    return 0;
}

static void a_gzip_profile_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct memory_sink memory;
    write_sample_profile(&memory);
    for (size_t n = 0; n < memory.n_bytes; n++)
        assert_int_equal(try_to_read(memory.bytes, n), 0);
    assert_int_equal(try_to_read(memory.bytes, memory.n_bytes), 1);
    free(memory.bytes);
}

static void a_gzip_profile_with_any_bit_flipped_never_crashes(void **state)
{
    (void)state;
    struct memory_sink memory;
    size_t n_read = 0, n_bits;
    write_sample_profile(&memory);
    n_bits = memory.n_bytes * 8;
    for (size_t bit = 0; bit < n_bits; bit++) {
        memory.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        n_read += (size_t)try_to_read(memory.bytes, memory.n_bytes);
        memory.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(n_read <= 8 * 10); /* only the gzip head has bits that don't matter */
    free(memory.bytes);
}

static void a_plain_profile_cut_or_flipped_anywhere_never_crashes(void **state)
{
    (void)state;
    struct memory_sink memory;
    size_t n_plain, n_read = 0, n_refused = 0;
    write_sample_profile(&memory);
    uint8_t *plain = gunzip(&memory, &n_plain);
    for (size_t n = 0; n < n_plain; n++)
        n_refused += !try_to_read(plain, n);
    for (size_t bit = 0; bit < n_plain * 8; bit++) {
        plain[bit / 8] ^= (uint8_t)(1 << bit % 8);
        n_read += (size_t)try_to_read(plain, n_plain);
        plain[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(n_refused > n_plain / 2);
    assert_true(n_read > 0 && n_read < n_plain * 8);
    assert_int_equal(try_to_read(plain, n_plain), 1);
    free(plain);
    free(memory.bytes);
}

static void random_bytes_never_crash(void **state)
{
    (void)state;
    uint8_t bytes[256];
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            /* Small numbers look like tags and lengths, so that parsing goes deep. */
            bytes[i] = random & 0x100 ? (uint8_t)random : (uint8_t)(random & 0x1f);
        }
        try_to_read(bytes, round % sizeof(bytes));
    }
}

static void a_bomb_is_refused(void **state)
{
    (void)state;
    /* A little more than allowed, as gzip members of a MiB. */
    enum { PART = 1 << 20, N_PARTS = 257 };
    uint8_t *zeros = calloc(1, PART), member[4096];
    z_stream stream = {
        .next_in = zeros, .avail_in = PART, .next_out = member, .avail_out = sizeof(member)};
    char error[PROFILE_ERROR_BYTES] = "";
    struct profile_data *profile = NULL;
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 9, 0), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t n_member = stream.total_out;
    deflateEnd(&stream);
    uint8_t *bomb = malloc(n_member * N_PARTS);
    for (size_t i = 0; i < N_PARTS; i++)
        memcpy(bomb + i * n_member, member, n_member);
    assert_int_equal(profile_read_bytes("bomb", bomb, n_member * N_PARTS, error, &profile), -EFBIG);
    assert_string_equal(error, "bomb: inflates to more than 256 MiB: not a profile");
    free(bomb);
    free(zeros);
}

static void a_file_and_standard_input_are_read_alike(void **state)
{
    (void)state;
    struct memory_sink memory;
    struct profile_data *profile = NULL;
    char error[PROFILE_ERROR_BYTES] = "";
    char *path = temporary_file("profile.pb.gz");
    write_sample_profile(&memory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(memory.bytes, 1, memory.n_bytes, file), memory.n_bytes);
    fclose(file);
    assert_int_equal(profile_read(path, error, &profile), 0);
    uint64_t sum = walk(profile);
    profile_free(profile);
    int saved = dup(STDIN_FILENO);
    assert_non_null(freopen(path, "r", stdin));
    assert_int_equal(profile_read("-", error, &profile), 0);
    assert_int_equal(walk(profile), sum);
    profile_free(profile);
    dup2(saved, STDIN_FILENO);
    close(saved);
    unlink(path);
    free(path);
    free(memory.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minimal_plain_profile_is_read),
        cmocka_unit_test(parts_that_do_not_fit_together_are_named),
        cmocka_unit_test(ids_may_be_any_numbers_in_any_order),
        cmocka_unit_test(what_is_no_profile_is_said_to_be_none),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(a_gzip_profile_cut_anywhere_is_refused),
        cmocka_unit_test(a_gzip_profile_with_any_bit_flipped_never_crashes),
        cmocka_unit_test(a_plain_profile_cut_or_flipped_anywhere_never_crashes),
        cmocka_unit_test(random_bytes_never_crash),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(a_file_and_standard_input_are_read_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
