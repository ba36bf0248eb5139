/* SPDX-License-Identifier: MIT */
#include "base/thread.h"

__thread struct thread_state thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
