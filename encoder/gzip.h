/* SPDX-License-Identifier: MIT
 * Bytes in, gzip out into a sink. The only file of the write side that knows zlib.
 *
 * Memory: about 350 KiB of scratch, whatever the amount of data. No malloc.
 * Threads: one at a time. Signals: safe where the sink is.
 * Failure: -errno; the sink is not called again after it refused.
 */
#ifndef LABELPROF_ENCODER_GZIP_H
#define LABELPROF_ENCODER_GZIP_H

#include <stddef.h>

struct gzip;
struct profile_sink;
struct scratch;

struct gzip *gzip_begin(struct scratch *scratch, struct profile_sink *sink); /* NULL: no memory */
int gzip_write(struct gzip *gzip, const void *bytes, size_t n_bytes);
int gzip_end(struct gzip *gzip); /* flushes the rest */

#endif
