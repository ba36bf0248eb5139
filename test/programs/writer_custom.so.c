/* SPDX-License-Identifier: MIT
 * A library of the custom-labels ABI, version 1. */
#include <stdint.h>

uint32_t custom_labels_abi_version = 1;
__thread const void *custom_labels_current_set;

void writer_set(const void *set)
{
    custom_labels_current_set = set;
}
