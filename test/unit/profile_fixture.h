/* SPDX-License-Identifier: MIT
 * For the tests of encoder/: a sink in memory, a head, samples, and a look at the wire format that
 * shares no code with the encoder. */
#ifndef LABELPROF_TEST_PROFILE_FIXTURE_H
#define LABELPROF_TEST_PROFILE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "encoder/profile_writer.h"
#include "encoder/reader.h"

#define UNUSED __attribute__((unused))

struct memory_sink {
    struct profile_sink sink;
    uint8_t *bytes;
    size_t n_bytes;
    int n_writes, fail_at; /* fail_at: the write, counted from 1, that is refused; 0: none */
    int error;
    struct profile_writer *watched; /* its peak is looked at in each write */
    size_t peak_bytes;
};

static UNUSED int memory_write(struct profile_sink *sink, const void *bytes, size_t n_bytes)
{
    struct memory_sink *memory = (struct memory_sink *)sink;
    assert_int_equal(memory->error, 0); /* never asked again after an error */
    if (memory->watched)
        memory->peak_bytes = profile_peak_bytes(memory->watched);
    if (++memory->n_writes == memory->fail_at)
        return memory->error = -28;
    memory->bytes = realloc(memory->bytes, memory->n_bytes + n_bytes);
    assert_non_null(memory->bytes);
    memcpy(memory->bytes + memory->n_bytes, bytes, n_bytes);
    memory->n_bytes += n_bytes;
    return 0;
}

static UNUSED const struct profile_value_type heap_types[] = {{"alloc_objects", "count"},
                                                              {"alloc_space", "bytes"},
                                                              {"inuse_objects", "count"},
                                                              {"inuse_space", "bytes"}};

static UNUSED const struct profile_head heap_head = {
    .value_types = heap_types,
    .n_value_types = 4,
    .default_type = "inuse_space",
    .period_type = {"space", "bytes"},
    .period = 524288,
    .time_nanos = INT64_C(1700000000123456789),
    .duration_nanos = INT64_C(90000000000),
};

static inline struct profile_text text_of(const char *text)
{
    return (struct profile_text){text, strlen(text)};
}

static inline struct profile_label text_label(const char *key, const char *text)
{
    return (struct profile_label){PROFILE_LABEL_TEXT, text_of(key), text_of(text), 0, 0};
}

static inline struct profile_label number_label(const char *key, int64_t number, const char *unit)
{
    return (struct profile_label){PROFILE_LABEL_NUMBER, text_of(key), text_of(unit), number, 0};
}

static inline struct profile_label symbol_label(const char *key, uint64_t frame)
{
    return (struct profile_label){PROFILE_LABEL_SYMBOL, text_of(key), {NULL, 0}, 0, frame};
}

static inline uint64_t frame_in(uint64_t mapping, uint64_t address)
{
    return mapping << PROFILE_FRAME_ADDRESS_BITS | address;
}

/* Reads what the sink got; fails the test if it can't. */
static UNUSED struct profile_data *read_sink(const struct memory_sink *memory)
{
    char error[PROFILE_ERROR_BYTES] = "";
    struct profile_data *profile = NULL;
    if (profile_read_bytes("sink", memory->bytes, memory->n_bytes, error, &profile))
        fail_msg("%s", error);
    return profile;
}

static UNUSED uint8_t *gunzip(const struct memory_sink *memory, size_t *ret_n)
{
    z_stream stream = {.next_in = memory->bytes, .avail_in = (uInt)memory->n_bytes};
    size_t capacity = 64u << 20;
    uint8_t *plain = malloc(capacity);
    assert_non_null(plain);
    stream.next_out = plain;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    *ret_n = stream.total_out;
    inflateEnd(&stream);
    return plain;
}

/* One field of a protobuf message. */
struct wire_field {
    unsigned number, type; /* type 0: value; type 2: bytes, n_bytes */
    uint64_t value;
    const uint8_t *bytes;
    size_t n_bytes;
};

static UNUSED uint64_t wire_varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        assert_true(*at < end);
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    fail_msg("a varint of more than 10 bytes");
    return 0;
}

static UNUSED bool wire_next(const uint8_t **at, const uint8_t *end, struct wire_field *field)
{
    if (*at == end)
        return false;
    uint64_t tag = wire_varint(at, end);
    *field = (struct wire_field){.number = (unsigned)(tag >> 3), .type = tag & 7};
    assert_true(field->type == 0 || field->type == 2);
    field->value = wire_varint(at, end);
    if (field->type == 2) {
        assert_true(field->value <= (size_t)(end - *at));
        field->bytes = *at;
        field->n_bytes = (size_t)field->value;
        *at += field->n_bytes;
    }
    return true;
}

/* A path in a directory of this test run; the caller frees. */
static UNUSED char *temporary_file(const char *name)
{
    const char *root = getenv("TMPDIR");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/labelprof-%d-%s", root ? root : "/tmp", (int)getpid(), name) >
                0);
    return path;
}

#endif
