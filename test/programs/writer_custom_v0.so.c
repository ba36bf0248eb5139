/* SPDX-License-Identifier: MIT
 * A library of the custom-labels ABI, version 0: the set itself is thread-local. */
#include <stdint.h>

uint32_t custom_labels_abi_version = 0;
__thread const void *custom_labels_thread_local_data[2];

void writer_set(const void *const *set)
{
    custom_labels_thread_local_data[0] = set ? set[0] : 0;
    custom_labels_thread_local_data[1] = set ? set[1] : 0;
}
