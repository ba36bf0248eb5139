/* SPDX-License-Identifier: MIT
 * What the process's environment says about it, as labels: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES,
 * BAGGAGE and TRACEPARENT, the carriers that OpenTelemetry and W3C define.
 *
 * Place: gather, once at start. These variables are not ours: what is wrong in them is passed over.
 * Pure: no allocation, no state.
 */
#ifndef LABELPROF_LABELS_ENVIRONMENT_H
#define LABELPROF_LABELS_ENVIRONMENT_H

#include <stddef.h>

#include "base/options.h"

/* Calls `add` for each label, the weightier variable first: service_name, resource attributes,
 * baggage, trace_id. Dots in keys have become underscores, percent-encoding is undone. */
typedef void environment_add(void *context, const struct label_text *label);
void environment_labels(char *const *environment, environment_add *add, void *context);

#endif
