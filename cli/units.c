/* SPDX-License-Identifier: MIT
 * Quantities for people, see units.h.
 */
#include "cli/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct scale {
    double factor;
    const char *suffix;
};

/* Largest first. Sizes grow by 1024, as LABELPROF_SAMPLE_BYTES counts k, m and g. */
static const struct scale byte_scales[] = {
    {0x1p60, "EiB"}, {0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
    {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"},
};
static const struct scale nanosecond_scales[] = {
    {1e9, "s"},
    {1e6, "ms"},
    {1e3, "us"},
    {1, "ns"},
};

/* Four digits; none behind the point when there is nothing to say there, as pprof has it. */
static int decimals(double scaled)
{
    double magnitude = fabs(scaled);
    if (magnitude == floor(magnitude) || magnitude >= 999.95)
        return 0;
    return magnitude < 99.995 ? 2 : 1;
}

/* The first scale in which the value, rounded to two places, is at least 1; else the last. */
static void format_scaled(char text[UNITS_MAX], int64_t value, const struct scale *scales,
                          size_t n_scales)
{
    size_t i = 0;
    while (i + 1 < n_scales && fabs((double)value) < scales[i].factor * 0.995)
        i++;
    double scaled = (double)value / scales[i].factor;
    snprintf(text, UNITS_MAX, "%.*f%s", decimals(scaled), scaled, scales[i].suffix);
}

void units_format(char text[UNITS_MAX], int64_t value, const char *unit)
{
    if (strcmp(unit, "bytes") == 0)
        format_scaled(text, value, byte_scales, sizeof byte_scales / sizeof *byte_scales);
    else if (strcmp(unit, "nanoseconds") == 0)
        format_scaled(text, value, nanosecond_scales,
                      sizeof nanosecond_scales / sizeof *nanosecond_scales);
    else if (unit[0] == '\0' || strcmp(unit, "count") == 0)
        snprintf(text, UNITS_MAX, "%lld", (long long)value);
    else
        units_format_exact(text, value, unit);
}

void units_format_exact(char text[UNITS_MAX], int64_t value, const char *unit)
{
    snprintf(text, UNITS_MAX, "%lld%s%.24s", (long long)value, unit[0] ? " " : "", unit);
}

double units_percent(int64_t value, int64_t total)
{
    return total == 0 ? 0 : 100.0 * (double)value / fabs((double)total);
}

void units_format_percent(char text[UNITS_MAX], int64_t value, int64_t total)
{
    if (total == 0)
        snprintf(text, UNITS_MAX, "-");
    else
        snprintf(text, UNITS_MAX, "%.2f%%", units_percent(value, total));
}
