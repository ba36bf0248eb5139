/* SPDX-License-Identifier: MIT
 * The published records as pprof: snapshot → encode.
 *
 * Threads: under the publish lock, which keeps every record's `active` still; samplers go on.
 * Allocation: the encoder's own mappings. Failure: -errno of the sink or of the encoder.
 */
#ifndef LABELPROF_PUBLISH_EXPORT_H
#define LABELPROF_PUBLISH_EXPORT_H

#include <stdint.h>

struct profile_sink;

struct export_times {
    uint64_t now_realtime_ns, duration_ns;
};

/* default_type: "inuse_space" or "alloc_space". */
int export_heap(struct profile_sink *sink, const char *default_type, struct export_times times);

#endif
