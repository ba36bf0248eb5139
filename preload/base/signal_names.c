/* SPDX-License-Identifier: MIT */
#include "base/signal_names.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "base/text.h"

static const struct {
    const char *name;
    int number;
} signal_names[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT},     {"ILL", SIGILL},
    {"TRAP", SIGTRAP}, {"ABRT", SIGABRT}, {"BUS", SIGBUS},       {"FPE", SIGFPE},
    {"KILL", SIGKILL}, {"USR1", SIGUSR1}, {"SEGV", SIGSEGV},     {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},     {"STKFLT", SIGSTKFLT},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT}, {"STOP", SIGSTOP},     {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU}, {"URG", SIGURG},       {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ}, {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
    {"IO", SIGIO},     {"POLL", SIGPOLL}, {"PWR", SIGPWR},       {"SYS", SIGSYS},
};

/* glibc keeps 32 and 33 for itself: the program's SIGRTMIN is 34. */
enum { RT_FIRST = 34, RT_LAST = 64 };

static int real_time_signal(const char *name, size_t n_bytes)
{
    bool from_min = n_bytes >= 5 && memcmp(name, "RTMIN", 5) == 0;
    bool from_max = n_bytes >= 5 && memcmp(name, "RTMAX", 5) == 0;
    uint64_t step = 0;
    if (!from_min && !from_max)
        return 0;
    if (n_bytes > 5) {
        if (name[5] != (from_min ? '+' : '-') || !text_to_number(name + 6, n_bytes - 6, &step))
            return 0;
        if (step > RT_LAST - RT_FIRST)
            return 0;
    }
    return from_min ? RT_FIRST + (int)step : RT_LAST - (int)step;
}

int signal_number(const char *name, size_t n_bytes)
{
    uint64_t number;
    if (text_to_number(name, n_bytes, &number))
        return number >= 1 && number <= RT_LAST && number != 32 && number != 33 ? (int)number : 0;
    if (n_bytes > 3 && memcmp(name, "SIG", 3) == 0)
        name += 3, n_bytes -= 3;
    for (size_t i = 0; i < ARRAY_LENGTH(signal_names); i++)
        if (strlen(signal_names[i].name) == n_bytes &&
            memcmp(signal_names[i].name, name, n_bytes) == 0)
            return signal_names[i].number;
    return real_time_signal(name, n_bytes);
}
