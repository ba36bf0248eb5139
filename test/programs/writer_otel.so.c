/* SPDX-License-Identifier: MIT
 * A library with an OpenTelemetry thread context, reached as position-independent code does by
 * default (__tls_get_addr). */
__thread const void *otel_thread_ctx_v1;

static unsigned char record[64]; /* goes with the library */

void writer_set(const void *context)
{
    otel_thread_ctx_v1 = context;
}

void *writer_record(void)
{
    return record;
}
