/* SPDX-License-Identifier: MIT
 *
 * The method: step once from a made-up frame in which SP, BP and every word in memory are values
 * that tell where they came from; the stepped registers then spell the rule out.
 *
 * A value's top four bits are its space: 0 real addresses, 1 near SP, 2 near BP, 3 a word read
 * near SP, 4 a word read near BP, and so on: word_at(a) = a + 2 spaces.
 *
 * Threads and signals: one compilation at a time; who finds one under way gets RULE_NONE for now.
 * So libunwind's own mutex is never waited for: not by a handler over its holder, and not in the
 * child of a fork that caught it held. Allocation: none after loading, which is the owner's matter.
 * Stack: libunwind 1.6 was seen to need 3 KiB; the rest of STACK_NEEDED_BYTES is for others.
 */
#include "unwind/compile.h"

#include <dlfcn.h>
#include <libunwind-x86_64.h>
#include <string.h>

#include "base/attributes.h"
#include "base/lock.h"
#include "base/sys.h"
#include "unwind/rule.h"

/* By soname, and never linked: as a dependency its _Unwind_* would go before libgcc's. */
#define LIBRARY "libunwind-x86_64.so.8"

enum { STACK_NEEDED_BYTES = 16 * 1024, SPACE_SHIFT = 60, TABLE_ROW_BYTES = 8 };

/* .eh_frame_hdr as every linker writes it, and as libunwind is told it is. */
struct table_head {
    uint8_t formats[4];
    int32_t eh_frame;
    uint32_t n_rows;
};

static const uint8_t usual_formats[] = {1, 0x1b, 0x03, 0x3b};

#define SPACE(n) ((unw_word_t)(n) << SPACE_SHIFT)
#define SPACE_MIDDLE (UINT64_C(1) << 40) /* offsets of either sign stay in the space */
/* So far apart that libunwind doesn't guess at a frame pointer where it finds no description. */
#define MADE_UP_SP (SPACE(1) + SPACE_MIDDLE)
#define MADE_UP_BP (SPACE(2) + SPACE_MIDDLE)
#define MADE_UP_OTHER (SPACE(7) + SPACE_MIDDLE)

static struct {
    __typeof(&_Ux86_64_create_addr_space) create_addr_space;
    __typeof(&_Ux86_64_set_caching_policy) set_caching_policy;
    __typeof(&_Ux86_64_init_remote) init_remote;
    __typeof(&_Ux86_64_step) step;
    __typeof(&_Ux86_64_get_reg) get_reg;
    int (*search_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t *, unw_proc_info_t *, int,
                        void *);
    unw_addr_space_t space;
} library; /* fixed when state turns to LOADED */

static uint32_t state;  /* atomic, enum unwind_compiler */
static bool is_loading; /* atomic */
static struct lock compiling;

/* What one compilation is about; libunwind hands it to the accessors. */
struct question {
    const struct cfi_tables *tables;
    uintptr_t address;
};

static unsigned space_of(unw_word_t value)
{
    return (unsigned)(value >> SPACE_SHIFT);
}

static unw_word_t word_at(unw_word_t address)
{
    return address + SPACE(2);
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *info,
                          int need_unwind_info, void *context)
{
    const struct question *question = context;
    uintptr_t header = question->tables->header;
    struct table_head head;
    memcpy(&head, (const void *)header, sizeof(head));
    uintptr_t rows_max = (question->tables->limit - header - sizeof(head)) / TABLE_ROW_BYTES;
    if (memcmp(head.formats, usual_formats, sizeof(usual_formats)) != 0 || head.n_rows > rows_max)
        return -UNW_ENOINFO;
    unw_dyn_info_t table = {.end_ip = ~(unw_word_t)0, .format = UNW_INFO_FORMAT_REMOTE_TABLE};
    table.u.rti.segbase = header;
    table.u.rti.table_data = header + sizeof(head);
    table.u.rti.table_len = head.n_rows * TABLE_ROW_BYTES / sizeof(unw_word_t);
    return library.search_table(space, ip, &table, info, need_unwind_info, context);
}

/* libunwind returns it to its own pool itself. */
static void put_unwind_info(unw_addr_space_t space, unw_proc_info_t *info, void *context)
{
    (void)space, (void)info, (void)context;
}

static int get_dyn_info_list_addr(unw_addr_space_t space, unw_word_t *list, void *context)
{
    (void)space, (void)list, (void)context;
    return -UNW_ENOINFO;
}

/* Real memory: the tables, and now and then a pointer to a personality routine elsewhere. */
static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int is_write,
                      void *context)
{
    const struct question *question = context;
    (void)space;
    if (is_write || space_of(address) > 4)
        return -UNW_EINVAL;
    if (space_of(address) != 0) {
        *value = word_at(address);
        return 0;
    }
    bool is_table = address >= question->tables->low && address + 8 <= question->tables->limit;
    if (!is_table && !sys_can_read(address))
        return -UNW_EINVAL;
    memcpy(value, (const void *)address, sizeof(*value));
    return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int is_write,
                      void *context)
{
    const struct question *question = context;
    (void)space;
    if (is_write)
        return -UNW_EREADONLYREG;
    switch (reg) {
    case UNW_X86_64_RIP:
        *value = question->address;
        break;
    case UNW_X86_64_RSP:
        *value = MADE_UP_SP;
        break;
    case UNW_X86_64_RBP:
        *value = MADE_UP_BP;
        break;
    default:
        *value = MADE_UP_OTHER;
    }
    return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int is_write,
                        void *context)
{
    (void)space, (void)reg, (void)value, (void)is_write, (void)context;
    return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
    (void)space, (void)cursor, (void)context;
    return -UNW_EINVAL;
}

static int get_proc_name(unw_addr_space_t space, unw_word_t address, char *name, size_t bytes,
                         unw_word_t *offset, void *context)
{
    (void)space, (void)address, (void)name, (void)bytes, (void)offset, (void)context;
    return -UNW_ENOINFO;
}

static uint64_t rule_spelt_by(unw_word_t cfa, unw_word_t pc, unw_word_t bp)
{
    if (pc != word_at(cfa - 8))
        return RULE_NONE;
    if (space_of(cfa) == space_of(word_at(MADE_UP_BP)))
        return bp == word_at(MADE_UP_BP)
                   ? rule_of(RULE_REALIGNED, (int64_t)(cfa - word_at(MADE_UP_BP)), 0)
                   : RULE_NONE;
    bool is_near_bp = space_of(cfa) == space_of(MADE_UP_BP);
    if (!is_near_bp && space_of(cfa) != space_of(MADE_UP_SP))
        return RULE_NONE;
    uint64_t base = is_near_bp ? RULE_BASE_IS_BP : 0;
    int64_t offset = (int64_t)(cfa - (is_near_bp ? MADE_UP_BP : MADE_UP_SP));
    if (bp == MADE_UP_BP)
        return rule_of(RULE_PLAIN | base, offset, 0);
    if (space_of(bp) != space_of(word_at(cfa)))
        return RULE_NONE;
    return rule_of(RULE_PLAIN | base | RULE_BP_IS_SAVED, offset, (int64_t)(bp - word_at(cfa)));
}

static uint64_t step_once(struct question *question)
{
    unw_cursor_t cursor;
    unw_word_t cfa, pc, bp;
    if (library.init_remote(&cursor, library.space, question) != 0 || library.step(&cursor) <= 0)
        return RULE_NONE;
    if (library.get_reg(&cursor, UNW_X86_64_RSP, &cfa) != 0 ||
        library.get_reg(&cursor, UNW_X86_64_RIP, &pc) != 0 ||
        library.get_reg(&cursor, UNW_X86_64_RBP, &bp) != 0)
        return RULE_NONE;
    return rule_spelt_by(cfa, pc, bp);
}

static COLD void want(void)
{
    uint32_t unwanted = UNWIND_COMPILER_UNWANTED;
    /* Relaxed: a wish carries no data. */
    __atomic_compare_exchange_n(&state, &unwanted, UNWIND_COMPILER_WANTED, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

bool compile_rule(const struct cfi_tables *tables, uintptr_t address, uintptr_t stack_left_bytes,
                  uint64_t *ret_rule)
{
    *ret_rule = RULE_NONE;
    if (compile_state() != UNWIND_COMPILER_LOADED) {
        want();
        return true; /* loading starts a generation, and with it this answer goes */
    }
    if (tables->limit - tables->header < sizeof(struct table_head))
        return true;
    if (stack_left_bytes < STACK_NEEDED_BYTES || !lock_try(&compiling))
        return false;
    struct question question = {tables, address};
    *ret_rule = step_once(&question);
    lock_drop(&compiling);
    return true;
}

static bool find_symbols(void *handle)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"_Ux86_64_create_addr_space", &library.create_addr_space},
        {"_Ux86_64_set_caching_policy", &library.set_caching_policy},
        {"_Ux86_64_init_remote", &library.init_remote},
        {"_Ux86_64_step", &library.step},
        {"_Ux86_64_get_reg", &library.get_reg},
        {"_Ux86_64_dwarf_search_unwind_table", &library.search_table},
    };
    for (unsigned i = 0; i < ARRAY_LENGTH(symbols); i++) {
        void *symbol = dlsym(handle, symbols[i].name);
        if (!symbol)
            return false;
        memcpy(symbols[i].place, &symbol, sizeof(symbol));
    }
    return true;
}

static bool load(void)
{
    static unw_accessors_t accessors = {
        find_proc_info, put_unwind_info, get_dyn_info_list_addr, access_mem, access_reg,
        access_fpreg,   resume,          get_proc_name,
    };
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle || !find_symbols(handle))
        return false;
    library.space = library.create_addr_space(&accessors, 0);
    return library.space && library.set_caching_policy(library.space, UNW_CACHE_NONE) == 0;
}

bool compile_load_if_wanted(void)
{
    if (likely(__atomic_load_n(&state, __ATOMIC_RELAXED) != UNWIND_COMPILER_WANTED))
        return false;
    /* Relaxed: who gets true keeps it for ever, so nobody follows. */
    if (__atomic_exchange_n(&is_loading, true, __ATOMIC_RELAXED))
        return false;
    bool did_load = load();
    /* Pairs with the acquire in compile_state: `library` is complete. */
    __atomic_store_n(&state, did_load ? UNWIND_COMPILER_LOADED : UNWIND_COMPILER_MISSING,
                     __ATOMIC_RELEASE);
    return did_load;
}

enum unwind_compiler compile_state(void)
{
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE);
}
