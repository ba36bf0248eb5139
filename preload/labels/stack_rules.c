/* SPDX-License-Identifier: MIT */
#include "labels/stack_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/attributes.h"
#include "base/message.h"
#include "base/options.h"
#include "base/sys.h"
#include "base/text.h"
#include "labels/gather.h"
#include "labels/rule_modules.h"
#include "unwind/find.h"
#include "unwind/modules.h"
#include "unwind/walk.h"

/* In a mapping of its own, which fork keeps. */
struct loaded {
    struct label_rules rules;
    struct rule_index index;
};

/* Fixed at start; NULL: no rules. */
static struct label_rules *rules;
static struct rule_index *rules_index;

/* By id. Under the book lock; kept by fork as the modules are. */
static const struct rule_module *compiled[MODULES_MAX + 1];

/* ---- the file ---- */

static const char *reason_of(long error)
{
    switch (-error) {
    case ENOENT:
    case ENOTDIR:
        return "no such file";
    case EACCES:
    case EPERM:
        return "permission denied";
    default:
        return "it can't be read";
    }
}

/* Reads one byte more than may be, so that the parser sees what is too long. */
static long read_all(int fd, char *to, size_t capacity)
{
    size_t n_bytes = 0;
    while (n_bytes < capacity) {
        long n = sys_read(fd, to + n_bytes, capacity - n_bytes);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return n;
        if (n == 0)
            break;
        n_bytes += (size_t)n;
    }
    return (long)n_bytes;
}

/* Its length, or -errno. A FIFO must not keep the program waiting: hence O_NONBLOCK. */
static long read_file(const char *path, char *to, size_t capacity)
{
    struct stat st;
    int fd =
        (int)sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    long n = sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
    if (n == 0)
        n = S_ISREG(st.st_mode) ? read_all(fd, to, capacity) : -EINVAL;
    sys_close(fd);
    return n;
}

/* "LABELPROF_RULES=path:line:column: what; profiling is off" */
static bool explain(const struct rule_error *at, const char *what, char *error, size_t error_bytes)
{
    const size_t most_bytes = 200; /* of the path, so that the rest fits too */
    struct line line = line_in(error, error_bytes);
    line_add(&line, "LABELPROF_RULES=");
    line_add_bytes(&line, options.rules,
                   text_cut_at_character(options.rules, strlen(options.rules), most_bytes));
    if (at) {
        line_add(&line, ":");
        line_add_number(&line, at->line);
        line_add(&line, ":");
        line_add_number(&line, at->column);
    }
    line_add(&line, ": ");
    line_add(&line, what);
    line_add(&line,
             at ? "; profiling is off" : "; it takes a regular file of rules; profiling is off");
    text_hide_controls(error);
    return false;
}

static void want_keys(void)
{
    for (uint32_t i = 0; i < rules->n_keys; i++) {
        struct rule_key *key = &rules->keys[i];
        key->is_wanted = gather_is_wanted(rules->text + key->at, key->n_bytes);
    }
}

/* ---- the functions of modules ---- */

static const struct rule_module *compile(const struct module *module,
                                         const struct function_source *functions)
{
    struct rule_module_range range = {module->start, module->limit, module->path};
    struct rules_in_use in_use = {rules, rules_index};
    return rule_module_compile(&in_use, &range, functions);
}

/* A frame of the calling thread lies at the address, so the object is there to be read. */
static COLD const struct rule_module *compile_from_memory(uint32_t id, uintptr_t address)
{
    struct memory_functions functions;
    struct function_source source = functions_in_memory(&functions, address);
    return compile(modules_get(id), &source);
}

static void compile_from_file(uint32_t id, struct file_functions *functions)
{
    const struct module *module = modules_get(id);
    struct function_source source;
    struct profile_mapping mapping = {.start = module->start,
                                      .limit = module->limit,
                                      .offset = module->file_offset,
                                      .file = module->path,
                                      .build_id = module->build_id,
                                      .build_id_bytes = module->build_id_bytes};
    if (!file_functions_open(functions, &mapping, &source))
        return; /* what it exports is in memory, if it is ever asked for */
    compiled[id] = compile(module, &source);
    file_functions_close(functions);
}

static bool is_ours(const struct dl_phdr_info *object, const ElfW(Phdr) * load)
{
    return (uintptr_t)&rules - object->dlpi_addr - load->p_vaddr < load->p_memsz;
}

static int read_object(struct dl_phdr_info *object, size_t bytes, void *functions)
{
    uint32_t id;
    struct cfi_tables tables;
    (void)bytes;
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && is_ours(object, &object->dlpi_phdr[i]))
            return 0;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &object->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && (load->p_flags & PF_X) &&
            modules_find(object->dlpi_addr + load->p_vaddr, &id, &tables) == MODULES_FOUND)
            compile_from_file(id, functions);
    }
    return 0;
}

static void read_symbol_tables(void)
{
    struct file_functions *functions = file_functions_new();
    if (!functions)
        return;
    dl_iterate_phdr(read_object, functions);
    file_functions_free(functions);
}

static void use(struct loaded *loaded)
{
    rules = &loaded->rules;
    rules_index = &loaded->index;
    want_keys();
    rule_index_build(rules_index, rules);
    read_symbol_tables();
}

bool stack_rules_open(char *error, size_t error_bytes)
{
    struct rule_error at;
    if (!options.rules[0])
        return true;
    struct loaded *loaded = sys_map(sizeof *loaded);
    if (!loaded)
        return explain(NULL, "there is no memory for it", error, error_bytes);
    long n_bytes = read_file(options.rules, loaded->rules.text, sizeof loaded->rules.text);
    bool is_good = n_bytes >= 0 && rule_file_parse(&loaded->rules, (size_t)n_bytes, &at);
    if (!is_good) {
        sys_unmap(loaded, sizeof *loaded);
        return n_bytes < 0 ? explain(NULL, reason_of(n_bytes), error, error_bytes)
                           : explain(&at, at.what, error, error_bytes);
    }
    if (loaded->rules.n_rules)
        use(loaded);
    message_verbose("label rules from", options.rules);
    return true;
}

/* ---- a stack ---- */

static void offer_frame(uint64_t frame, struct rule_choice *choice)
{
    uint32_t id = FRAME_MODULE(frame);
    const struct module *module = modules_get(id);
    uintptr_t address = (uintptr_t)FRAME_ADDRESS(frame);
    if (!module)
        return;
    if (!compiled[id])
        compiled[id] = compile_from_memory(id, address);
    if (compiled[id])
        rule_module_offer(compiled[id], rules, address - module->start, choice);
}

unsigned stack_rules_find(const uint64_t *frames, unsigned n_frames,
                          uint16_t ret_rules[RULE_KEYS_MAX])
{
    if (likely(!rules))
        return 0;
    struct rule_choice choice = {.settled = 0};
    for (unsigned i = 0; i < n_frames; i++) {
        offer_frame(frames[i], &choice);
        if (rule_choice_next_frame(&choice, rules))
            break;
    }
    return rule_choice_list(&choice, ret_rules);
}

struct rule_label stack_rules_label(uint16_t index)
{
    const struct label_rule *rule = &rules->rules[index];
    const struct rule_key *key = &rules->keys[rule->key];
    return (struct rule_label){.key = rules->text + key->at,
                               .key_bytes = key->n_bytes,
                               .value = rules->text + rule->value,
                               .value_bytes = rule->value_bytes};
}
