/* SPDX-License-Identifier: MIT
 * A library of a custom-labels ABI that nobody knows yet. */
#include <stdint.h>

uint32_t custom_labels_abi_version = 2;
__thread const void *custom_labels_current_set;

void writer_set(const void *set)
{
    custom_labels_current_set = set;
}
