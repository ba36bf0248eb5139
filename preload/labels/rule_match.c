/* SPDX-License-Identifier: MIT
 * What rules match, and which of them win: the other half of rule_file.h. */
#include "labels/rule_file.h"

#include <string.h>

/* Where a star that was tried up to `name` may end next: where the byte after it stands. */
static const char *next_end_of_star(const char *after_star, const char *name, const char *end)
{
    if (name == end)
        return NULL;
    if (*after_star == '?' || *after_star == '*')
        return name + 1;
    return memchr(name + 1, *after_star, (size_t)(end - name - 1));
}

/* Only the last star needs a second thought: an earlier one has no better choice than its first. */
bool rule_pattern_matches(const char *pattern, const char *name, size_t n_bytes)
{
    const char *end = name + n_bytes, *star = NULL, *resume = NULL;
    while (name < end || *pattern == '*') {
        if (*pattern == '*') {
            star = ++pattern;
            resume = name;
            if (!*pattern)
                return true;
        } else if (*pattern && (*pattern == '?' || *pattern == *name)) {
            pattern++, name++;
        } else if (star && (resume = next_end_of_star(star, resume, end))) {
            pattern = star;
            name = resume;
        } else {
            return false;
        }
    }
    return *pattern == '\0';
}

static bool matches_any(const struct label_rules *rules, const struct rule_patterns *patterns,
                        const char *name, size_t n_bytes)
{
    for (unsigned i = 0; i < patterns->n; i++)
        if (rule_pattern_matches(rules->text + rules->patterns[patterns->first + i], name, n_bytes))
            return true;
    return false;
}

bool rule_takes_module(const struct label_rules *rules, const struct label_rule *rule,
                       const char *file)
{
    const char *slash = strrchr(file, '/');
    const char *base_name = slash ? slash + 1 : file;
    return !rule->modules.n || matches_any(rules, &rule->modules, base_name, strlen(base_name));
}

bool rule_takes_function(const struct label_rules *rules, const struct label_rule *rule,
                         const char *name, size_t n_bytes)
{
    return !rule->functions.n || matches_any(rules, &rule->functions, name, n_bytes);
}

void rule_choice_offer(struct rule_choice *choice, const struct label_rules *rules, unsigned rule)
{
    unsigned key = rules->rules[rule].key;
    uint16_t *best = &choice->best[key];
    if (!(choice->settled >> key & 1) && (!*best || rule + 1 < *best))
        *best = (uint16_t)(rule + 1);
}

bool rule_choice_next_frame(struct rule_choice *choice, const struct label_rules *rules)
{
    bool is_done = true;
    for (unsigned key = 0; key < rules->n_keys; key++) {
        if (choice->best[key])
            choice->settled |= UINT32_C(1) << key;
        is_done &= choice->best[key] || !rules->keys[key].is_wanted;
    }
    return is_done;
}

unsigned rule_choice_list(const struct rule_choice *choice, uint16_t ret_rules[RULE_KEYS_MAX])
{
    unsigned n = 0;
    for (unsigned key = 0; key < RULE_KEYS_MAX; key++)
        if (choice->best[key])
            ret_rules[n++] = (uint16_t)(choice->best[key] - 1);
    return n;
}
