/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <signal.h>
#include <string.h>

#include "base/attributes.h"
#include "base/signal_names.h"
#include "base/text.h"

struct options options;

#define FIELD(name) offsetof(struct options, name)
#define KIB UINT64_C(1024)
#define LATER(variable, text)                                                                    \
    {                                                                                            \
        variable, OPTION_LATER, 0, "", 0, 0, NULL, "nothing: this version does not have it", text \
    }

const struct option_row option_rows[] = {
    {"LABELPROF_OUT", OPTION_TEMPLATE, FIELD(out), "labelprof.%e.%p.%t.pb.gz", 0, 0, NULL,
     "a path with %e %p %t %n %h %%",
     "Where profiles go: %e program, %p pid, %t profile type, %n sequence number, %h host name."},
    {"LABELPROF_PROFILES", OPTION_CHOICES, FIELD(profiles), "heap", 1, 0, "heap,allocs",
     "a comma list of heap, allocs", "Which profiles a dump writes."},
    {"LABELPROF_SAMPLE_BYTES", OPTION_SIZE, FIELD(sample_bytes), "512k", 1, KIB *KIB *KIB *KIB,
     NULL, "a whole number of bytes from 1 to 1t, with k, m, g or t",
     "Mean bytes between samples; 1 records every allocation."},
    {"LABELPROF_DUMP_INTERVAL_S", OPTION_NUMBER, FIELD(dump_interval_s), "0", 0, 31536000, NULL,
     "whole seconds from 0 (off) to 31536000", "Dump every so many seconds, besides at exit."},
    {"LABELPROF_DUMP_SIGNAL", OPTION_SIGNAL, FIELD(dump_signal), "", 0, 0, NULL,
     "a signal such as USR2, RTMIN+3 or 12 (not KILL or STOP)",
     "A signal that asks for a dump; a handler of the program's own wins."},
    {"LABELPROF_EXIT_SIGNALS", OPTION_SIGNALS, FIELD(exit_signals), "", 0, 0, NULL,
     "a comma list of signals that end a program, such as TERM,INT",
     "Dump when one of these ends the program; it still dies by the signal."},
    {"LABELPROF_CYCLE_MS", OPTION_NUMBER, FIELD(cycle_ms), "1000", 10, 3600000, NULL,
     "whole milliseconds from 10 to 3600000", "Length of a publish cycle."},
    {"LABELPROF_LABELS", OPTION_LABELS, FIELD(labels), "", 0, 0, NULL,
     "key=value,key=value with , = % percent-encoded, keys of 1 to 64 bytes, at most 32",
     "Labels of the whole process."},
    {"LABELPROF_THREAD_LABELS", OPTION_CHOICES, FIELD(thread_labels), "name", 0, 0,
     "name,start,id", "none or a comma list of name, start, id",
     "Which of thread_name, thread_start, thread_id label a sample."},
    {"LABELPROF_LABEL_SOURCES", OPTION_CHOICES, FIELD(label_sources), "api,otel,custom,env", 0, 0,
     "api,otel,custom,env", "none or a comma list of api, otel, custom, env",
     "Which label providers are read: labelprof.h, OpenTelemetry thread context, custom-labels, "
     "OTEL_* and BAGGAGE in the environment."},
    {"LABELPROF_LABEL_KEYS", OPTION_TEXT, FIELD(label_keys), "", 0, 0, NULL,
     "a comma list of label keys", "Only these string labels are kept (default: all but trace_id, span_id)."},
    {"LABELPROF_RULES", OPTION_TEXT, FIELD(rules), "", 0, 0, NULL,
     "a file of rules, such as `component=json function json_*` (see `labelprof help rules`)",
     "File of rules that give labels by the functions and modules of a stack."},
    {"LABELPROF_MAX_LABEL_SETS", OPTION_NUMBER, FIELD(max_label_sets), "4096", 1, 1u << 20, NULL,
     "a whole number from 1 to 1048576",
     "Label sets whose totals are kept; any other books its allocations under (other)."},
    {"LABELPROF_MAX_MEMORY", OPTION_SIZE, FIELD(max_memory), "64m", KIB *KIB, KIB *KIB *KIB * 64,
     NULL, "a whole number of bytes from 1m to 64g, with k, m or g",
     "What the profiler's records may use; near it the interval doubles."},
    {"LABELPROF_STACK_DEPTH", OPTION_NUMBER, FIELD(stack_depth), "128", 1, STACK_DEPTH_MAX, NULL,
     "a whole number from 1 to 512", "Frames kept of each stack."},
    LATER("LABELPROF_HTTP", "Serve /debug/pprof/ on an address."),
    LATER("LABELPROF_HTTP_PUBLIC", "Allow an address that is not loopback."),
    LATER("LABELPROF_LOG", "Event log."),
    LATER("LABELPROF_SPOOL", "File that survives SIGKILL and the OOM killer."),
    {"LABELPROF_CHILDREN", OPTION_NUMBER, FIELD(children), "1", 0, 1, NULL, "0 or 1",
     "0: programs started by exec are not profiled."},
    {"LABELPROF_VERBOSE", OPTION_NUMBER, FIELD(verbose), "0", 0, 1, NULL, "0 or 1",
     "1: say on stderr what was set up and written."},
    {"LABELPROF_DISABLE", OPTION_NUMBER, FIELD(disable), "0", 0, 1, NULL, "0 or 1",
     "1: forward and do nothing else."},
};
const size_t n_option_rows = ARRAY_LENGTH(option_rows);

static bool read_size(const char *text, uint64_t *ret)
{
    static const char units[] = "kmgt";
    size_t n_bytes = strlen(text);
    const char *unit = n_bytes ? strchr(units, text[n_bytes - 1] | 0x20) : NULL;
    uint64_t number;
    if (!text_to_number(text, n_bytes - (unit && *unit), &number))
        return false;
    unsigned shift = unit && *unit ? 10u * (unsigned)(unit - units + 1) : 0;
    *ret = number << shift;
    return *ret >> shift == number;
}

static bool read_choices(const struct option_row *row, const char *text, uint64_t *ret)
{
    uint64_t bits = 0;
    if (row->min == 0 && strcmp(text, "none") == 0) {
        *ret = 0;
        return true;
    }
    while (*text) {
        size_t n = strcspn(text, ",");
        const char *choice = row->choices;
        uint64_t bit = 1;
        for (; *choice; bit <<= 1) {
            size_t n_choice = strcspn(choice, ",");
            if (n == n_choice && memcmp(choice, text, n) == 0)
                break;
            choice += n_choice + (choice[n_choice] == ',');
        }
        if (!*choice)
            return false;
        bits |= bit;
        text += n + (text[n] == ',');
    }
    *ret = bits;
    return bits != 0;
}

static bool can_be_caught(int number)
{
    return number != 0 && number != SIGKILL && number != SIGSTOP;
}

static bool ends_a_program(int number)
{
    switch (number) {
    case SIGCHLD:
    case SIGCONT:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
        return false;
    default:
        return can_be_caught(number);
    }
}

static bool read_signals(const char *text, uint64_t *ret)
{
    uint64_t bits = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        int number = signal_number(text, n);
        if (!ends_a_program(number))
            return false;
        bits |= UINT64_C(1) << (number - 1);
        text += n + (text[n] == ',');
    }
    *ret = bits;
    return true;
}

static bool are_labels(const char *text)
{
    struct label_text label;
    bool is_bad;
    int n_labels = 0;
    while (label_text_next(&text, &label, &is_bad))
        n_labels++;
    return !is_bad && n_labels <= LABELS_MAX;
}

static bool copy_text(const char *text, char *field)
{
    size_t n_bytes = strlen(text);
    if (n_bytes >= OPTION_TEXT_BYTES)
        return false;
    memcpy(field, text, n_bytes + 1);
    return true;
}

static bool is_template(const char *text)
{
    for (const char *at = strchr(text, '%'); at; at = strchr(at + 2, '%'))
        if (!at[1] || !strchr("eptnh%", at[1]))
            return false;
    return true;
}

bool option_read(const struct option_row *row, const char *text, struct options *ret)
{
    void *field = (char *)ret + row->offset;
    uint64_t *number = field;
    if (!text || !*text) /* NAME= is the default, as if it were not set */
        text = row->default_text;
    switch (row->kind) {
    case OPTION_SIZE:
        return read_size(text, number) && *number >= row->min && *number <= row->max;
    case OPTION_NUMBER:
        return text_to_number(text, strlen(text), number) && *number >= row->min &&
               *number <= row->max;
    case OPTION_TEXT:
        return copy_text(text, field);
    case OPTION_TEMPLATE:
        return is_template(text) && copy_text(text, field);
    case OPTION_LABELS:
        return are_labels(text) && copy_text(text, field);
    case OPTION_CHOICES:
        return read_choices(row, text, number);
    case OPTION_SIGNAL:
        *number = (uint64_t)signal_number(text, strlen(text));
        return !*text || can_be_caught((int)*number);
    case OPTION_SIGNALS:
        return read_signals(text, number);
    case OPTION_LATER:
        return !*text;
    }
    return false;
}

static void explain(const struct option_row *row, const char *name, size_t n_name,
                    const char *value, char *error, size_t error_bytes)
{
    const size_t most_bytes = 200; /* of the value, so that what is accepted fits too */
    struct line line = line_in(error, error_bytes);
    line_add_bytes(&line, name, n_name);
    line_add(&line, "=");
    line_add_bytes(&line, value,
                   text_cut_at_character(value, strnlen(value, most_bytes + 1), most_bytes));
    line_add(&line, ": not accepted; ");
    line_add(&line, row ? "it takes " : "there is no such variable (see `labelprof help env`)");
    line_add(&line, row ? row->accepts : "");
    line_add(&line, "; profiling is off");
    text_hide_controls(error);
}

static const struct option_row *find_row(const char *name, size_t n_bytes)
{
    for (size_t i = 0; i < n_option_rows; i++)
        if (strlen(option_rows[i].name) == n_bytes &&
            memcmp(option_rows[i].name, name, n_bytes) == 0)
            return &option_rows[i];
    return NULL;
}

bool options_parse(struct options *ret, char *const *environment, char *error, size_t error_bytes)
{
    for (size_t i = 0; i < n_option_rows; i++)
        option_read(&option_rows[i], NULL, ret);
    for (; environment && *environment; environment++) {
        const char *variable = *environment;
        size_t n_name = strcspn(variable, "=");
        if (strncmp(variable, "LABELPROF_", 10) != 0 || !variable[n_name])
            continue;
        const struct option_row *row = find_row(variable, n_name);
        const char *value = variable + n_name + 1;
        if (row ? option_read(row, value, ret) : !*value)
            continue;
        explain(row, variable, n_name, value, error, error_bytes);
        return false;
    }
    return true;
}
