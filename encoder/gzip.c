/* SPDX-License-Identifier: MIT */
#include "encoder/gzip.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "encoder/profile_writer.h"
#include "encoder/scratch.h"

/* Messages are some 100 bytes; a call of deflate for each would cost more than its work. */
enum { INPUT_BYTES = 32 * 1024, OUTPUT_BYTES = 32 * 1024 };

/* Speed over size: a dump runs inside somebody's program. */
enum { LEVEL = 1, WINDOW_BITS = 15, GZIP_WRAPPER = 16, MEMORY_LEVEL = 8 };

struct gzip {
    z_stream stream;
    struct profile_sink *sink;
    size_t n_input;
    unsigned char input[INPUT_BYTES];
    unsigned char output[OUTPUT_BYTES];
};

static voidpf take(voidpf scratch, uInt n_items, uInt item_bytes)
{
    return scratch_take(scratch, (size_t)n_items * item_bytes);
}

static void leave(voidpf scratch, voidpf address)
{
    (void)scratch; /* goes with the rest of the scratch */
    (void)address;
}

struct gzip *gzip_begin(struct scratch *scratch, struct profile_sink *sink)
{
    struct gzip *gzip = scratch_take(scratch, sizeof(*gzip));
    if (!gzip)
        return NULL;
    gzip->sink = sink;
    gzip->stream.zalloc = take;
    gzip->stream.zfree = leave;
    gzip->stream.opaque = scratch;
    if (deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_WRAPPER, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        return NULL;
    return gzip;
}

/* Compresses the input buffer and empties it. */
static int compress_input(struct gzip *gzip, int flush)
{
    z_stream *stream = &gzip->stream;
    stream->next_in = gzip->input;
    stream->avail_in = (uInt)gzip->n_input;
    gzip->n_input = 0;
    do {
        stream->next_out = gzip->output;
        stream->avail_out = OUTPUT_BYTES;
        if (deflate(stream, flush) == Z_STREAM_ERROR)
            return -EIO;
        size_t n_output = OUTPUT_BYTES - stream->avail_out;
        int error = n_output ? gzip->sink->write(gzip->sink, gzip->output, n_output) : 0;
        if (error)
            return error;
    } while (stream->avail_out == 0);
    return 0;
}

int gzip_write(struct gzip *gzip, const void *bytes, size_t n_bytes)
{
    const unsigned char *next = bytes;
    while (n_bytes > 0) {
        size_t n = INPUT_BYTES - gzip->n_input;
        if (n > n_bytes)
            n = n_bytes;
        memcpy(gzip->input + gzip->n_input, next, n);
        gzip->n_input += n;
        next += n;
        n_bytes -= n;
        int error = gzip->n_input == INPUT_BYTES ? compress_input(gzip, Z_NO_FLUSH) : 0;
        if (error)
            return error;
    }
    return 0;
}

int gzip_end(struct gzip *gzip)
{
    int error = compress_input(gzip, Z_FINISH);
    deflateEnd(&gzip->stream);
    return error;
}
