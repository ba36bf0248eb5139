/* SPDX-License-Identifier: MIT
 * A program that defines and exports the label variables itself, as a static writer makes it. */
#include "writers.h"

__thread const void *otel_thread_ctx_v1;
__thread const void *custom_labels_current_set;
const uint32_t custom_labels_abi_version = 1;

static NOINLINE void leak_here(void)
{
    keep(malloc(100));
}

int main(void)
{
    static const char *const keys[] = {"route"};
    struct otel_record *record = otel_new();
    struct custom_label labels[] = {custom_label("tenant", "acme"), custom_label("route", "lower")};
    struct custom_set set = {labels, 2, 2};
    otel_publish(keys, 1);
    otel_add_text(record, 0, "/cart");
    otel_thread_ctx_v1 = record;
    custom_labels_current_set = &set;
    leak_here();
    return 0;
}
