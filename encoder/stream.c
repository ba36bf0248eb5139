/* SPDX-License-Identifier: MIT */
#include "encoder/stream.h"

#include <errno.h>
#include <string.h>

#include "base/attributes.h"
#include "encoder/gzip.h"

enum { STRING_FIELD = 6, LENGTH_PREFIXED = 2 }; /* of Profile; the wire type */

void stream_fail(struct stream *stream, int error)
{
    if (!stream->error)
        stream->error = error;
}

bool stream_reserve(struct stream *stream, struct scratch_array *array, size_t n_bytes)
{
    bool did = scratch_reserve(&stream->scratch, array, n_bytes);
    if (unlikely(!did))
        stream_fail(stream, -ENOMEM);
    return did;
}

void stream_put(struct stream *stream, const void *bytes, size_t n_bytes)
{
    if (!stream->error)
        stream->error = gzip_write(stream->gzip, bytes, n_bytes);
}

size_t stream_prefix(uint8_t *to, unsigned field, size_t n_bytes)
{
    size_t n = 0;
    to[n++] = (uint8_t)(field << 3 | LENGTH_PREFIXED);
    for (; n_bytes >= 0x80; n_bytes >>= 7)
        to[n++] = (uint8_t)(n_bytes | 0x80);
    to[n++] = (uint8_t)n_bytes;
    return n;
}

static void put_string(struct stream *stream, struct profile_text text)
{
    uint8_t prefix[PREFIX_BYTES];
    stream_put(stream, prefix, stream_prefix(prefix, STRING_FIELD, text.n_bytes));
    stream_put(stream, text.bytes, text.n_bytes);
}

int64_t stream_text(struct stream *stream, struct profile_text text)
{
    bool is_new;
    int64_t index = strings_index(&stream->strings, text, &is_new);
    if (unlikely(index < 0)) {
        stream_fail(stream, (int)index);
        return 0;
    }
    if (unlikely(is_new))
        put_string(stream, strings_at(&stream->strings, index)->text);
    return index;
}

int64_t stream_c_text(struct stream *stream, const char *text)
{
    return text ? stream_text(stream, (struct profile_text){text, strlen(text)}) : 0;
}

bool stream_begin(struct stream *stream, struct profile_sink *sink)
{
    *stream = (struct stream){0};
    stream->gzip = gzip_begin(&stream->scratch, sink);
    if (!stream->gzip || !strings_begin(&stream->strings, &stream->scratch)) {
        stream_fail(stream, -ENOMEM);
        return false;
    }
    put_string(stream, (struct profile_text){"", 0});
    return true;
}

int stream_end(struct stream *stream)
{
    if (!stream->error)
        stream->error = gzip_end(stream->gzip);
    strings_end(&stream->strings);
    scratch_end(&stream->scratch);
    return stream->error;
}
