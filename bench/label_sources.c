/* SPDX-License-Identifier: MIT
 * What a sample costs with labels of each provider, served by rounds: label_sources WHO [threads].
 * WHO: none, api, otel, custom, all; 8 labels of each. "threads": a second thread sleeps, so that the
 * program is not single-threaded. LABELPROF_SAMPLE_BYTES=1: each malloc is a sample.
 */
#include <pthread.h>
#include <string.h>

#include "../test/programs/writers.h"
#include "labelprof.h"
#include "rounds.h"

enum { N_LABELS = 8 };

__thread const void *otel_thread_ctx_v1;
__thread const void *custom_labels_current_set;
const uint32_t custom_labels_abi_version = 1;

static void allocate(long n)
{
    while (n--) {
        void *p = malloc(64);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
}

static char *text(const char *kind, int i)
{
    char *made = malloc(32);
    snprintf(made, 32, "%s-%d", kind, i);
    return made;
}

static void set_api(void)
{
    for (int i = 0; i < N_LABELS; i++)
        labelprof_set(text("api", i), text("value", i));
}

static void set_otel(void)
{
    static const char *keys[N_LABELS];
    struct otel_record *record = otel_new();
    for (int i = 0; i < N_LABELS; i++) {
        keys[i] = text("otel", i);
        otel_add_text(record, (uint8_t)i, text("value", i));
    }
    otel_publish(keys, N_LABELS);
    otel_thread_ctx_v1 = record;
}

static void set_custom(void)
{
    static struct custom_label labels[N_LABELS];
    static struct custom_set set = {labels, N_LABELS, N_LABELS};
    for (int i = 0; i < N_LABELS; i++)
        labels[i] = custom_label(text("custom", i), text("value", i));
    custom_labels_current_set = &set;
}

static void *sleep_on(void *unused)
{
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    const char *who = argc > 1 ? argv[1] : "none";
    int is_all = strcmp(who, "all") == 0;
    if (argc > 2)
        pthread_create(&thread, NULL, sleep_on, NULL);
    if (is_all || strcmp(who, "api") == 0)
        set_api();
    if (is_all || strcmp(who, "otel") == 0)
        set_otel();
    if (is_all || strcmp(who, "custom") == 0)
        set_custom();
    return serve_rounds(allocate, 1);
}
