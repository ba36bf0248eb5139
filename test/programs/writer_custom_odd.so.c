/* SPDX-License-Identifier: MIT
 * Something else of the custom-labels names: the version has not its size. */
#include <stdint.h>

uint64_t custom_labels_abi_version = 1;
__thread const void *custom_labels_current_set;

void writer_set(const void *set)
{
    custom_labels_current_set = set;
}
