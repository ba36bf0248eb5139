/* SPDX-License-Identifier: MIT
 * What standard output is, see terminal.h.
 */
#include "cli/terminal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "cli/text.h"

/* NO_COLOR: no-color.org, set and not empty means none. */
static bool wants_colours(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    return !(no_color && no_color[0]) && kind && strcmp(kind, "dumb") != 0;
}

struct terminal terminal_of_stdout(void)
{
    struct terminal terminal = {TEXT_WHOLE, "", "", ""};
    struct winsize size;
    if (!isatty(STDOUT_FILENO))
        return terminal;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        terminal.n_columns = size.ws_col;
    if (wants_colours()) {
        terminal.bold = "\033[1m";
        terminal.yellow = "\033[33m";
        terminal.plain = "\033[0m";
    }
    return terminal;
}
