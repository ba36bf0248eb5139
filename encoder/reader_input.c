/* SPDX-License-Identifier: MIT */
#include "encoder/reader_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "encoder/reader.h"

enum { FIRST_BYTES = 64 * 1024, ANY_WINDOW_GZIP = 15 + 16 };

int input_error(char *error, int code, const char *name, const char *format, ...)
{
    va_list arguments;
    size_t n = (size_t)snprintf(error, PROFILE_ERROR_BYTES / 2, "%s", name);
    if (n >= PROFILE_ERROR_BYTES / 2)
        n = PROFILE_ERROR_BYTES / 2 - 1;
    n += (size_t)snprintf(error + n, PROFILE_ERROR_BYTES - n, ": ");
    va_start(arguments, format);
    vsnprintf(error + n, PROFILE_ERROR_BYTES - n, format, arguments);
    va_end(arguments);
    return code;
}

static int no_memory(char *error, const char *name)
{
    return input_error(error, -ENOMEM, name, "not enough memory to read it");
}

/* Room for one more byte at least; doubles. */
static bool grow(struct input *input, size_t *capacity)
{
    if (input->n_bytes < *capacity)
        return true;
    size_t larger = *capacity ? 2 * *capacity : FIRST_BYTES;
    if (larger > INPUT_MAX_BYTES + 1u)
        larger = INPUT_MAX_BYTES + 1u;
    uint8_t *bytes = realloc(input->bytes, larger);
    if (!bytes)
        return false;
    input->bytes = bytes;
    *capacity = larger;
    return true;
}

static int read_all(int fd, const char *name, char *error, struct input *input)
{
    size_t capacity = 0;
    for (;;) {
        if (!grow(input, &capacity))
            return no_memory(error, name);
        ssize_t n = read(fd, input->bytes + input->n_bytes, capacity - input->n_bytes);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return input_error(error, -errno, name, "cannot read: %s", strerror(errno));
        input->n_bytes += n > 0 ? (size_t)n : 0;
        if (input->n_bytes > INPUT_MAX_BYTES)
            return input_error(error, -EFBIG, name, "larger than %d MiB: not a profile",
                               INPUT_MAX_BYTES >> 20);
    }
}

int input_read(const char *path, char *error, struct input *ret_input)
{
    struct input input = {NULL, 0};
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return input_error(error, -errno, name, "cannot open: %s", strerror(errno));
    int result = read_all(fd, name, error, &input);
    if (!is_stdin)
        close(fd);
    if (result == 0)
        *ret_input = input;
    else
        free(input.bytes);
    return result;
}

static int inflate_error(const char *name, const z_stream *stream, int code, char *error)
{
    if (code == Z_MEM_ERROR)
        return no_memory(error, name);
    if (code == Z_BUF_ERROR)
        return input_error(error, -EBADMSG, name,
                           "ends too early: cut short while written or copied; take it again");
    return input_error(error, -EBADMSG, name, "damaged gzip data (%s); take or copy it again",
                       stream->msg ? stream->msg : "bad header");
}

/* One inflate call; 0 while there is more to do, 1 at the end. */
static int inflate_some(const char *name, z_stream *stream, char *error, struct input *output,
                        size_t *capacity)
{
    if (!grow(output, capacity))
        return no_memory(error, name);
    stream->next_out = output->bytes + output->n_bytes;
    stream->avail_out = (uInt)(*capacity - output->n_bytes);
    int code = inflate(stream, Z_NO_FLUSH);
    output->n_bytes = *capacity - stream->avail_out;
    if (output->n_bytes > INPUT_MAX_BYTES)
        return input_error(error, -EFBIG, name, "inflates to more than %d MiB: not a profile",
                           INPUT_MAX_BYTES >> 20);
    if (code == Z_STREAM_END && stream->avail_in == 0)
        return 1;
    if (code == Z_STREAM_END) /* another member follows, as after cat a.gz b.gz */
        code = inflateReset(stream);
    return code == Z_OK ? 0 : inflate_error(name, stream, code, error);
}

static int inflate_all(const char *name, const void *bytes, size_t n_bytes, char *error,
                       struct input *output)
{
    z_stream stream = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n_bytes};
    size_t capacity = 0;
    int result = 0;
    if (inflateInit2(&stream, ANY_WINDOW_GZIP) != Z_OK)
        return no_memory(error, name);
    while (result == 0)
        result = inflate_some(name, &stream, error, output, &capacity);
    inflateEnd(&stream);
    return result < 0 ? result : 0;
}

static int copy(const char *name, const void *bytes, size_t n_bytes, char *error,
                struct input *output)
{
    output->bytes = malloc(n_bytes + 1);
    if (!output->bytes)
        return no_memory(error, name);
    memcpy(output->bytes, bytes, n_bytes);
    output->n_bytes = n_bytes;
    return 0;
}

int input_inflate(const char *name, const void *bytes, size_t n_bytes, char *error,
                  struct input *ret_input)
{
    struct input output = {NULL, 0};
    const uint8_t *head = bytes;
    if (n_bytes == 0)
        return input_error(error, -ENODATA, name,
                           "empty: nothing was written, or it is still being written");
    if (n_bytes > INPUT_MAX_BYTES)
        return input_error(error, -EFBIG, name, "larger than %d MiB: not a profile",
                           INPUT_MAX_BYTES >> 20);
    bool is_gzip = n_bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b;
    int result = is_gzip ? inflate_all(name, bytes, n_bytes, error, &output)
                         : copy(name, bytes, n_bytes, error, &output);
    if (result == 0)
        *ret_input = output;
    else
        free(output.bytes);
    return result;
}
