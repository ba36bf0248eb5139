/* SPDX-License-Identifier: MIT */
#include "unwind/cfi.h"

#include "unwind/fde.h"
#include "unwind/rule.h"

/* DWARF call frame instructions; the first three carry an operand in their low six bits. */
enum {
    OP_MASK = 0xc0,
    OP_ADVANCE = 0x40,
    OP_OFFSET = 0x80,
    OP_RESTORE = 0xc0,
    OP_NOP = 0x00,
    OP_SET_LOC = 0x01,
    OP_ADVANCE1 = 0x02,
    OP_ADVANCE2 = 0x03,
    OP_ADVANCE4 = 0x04,
    OP_OFFSET_EXTENDED = 0x05,
    OP_RESTORE_EXTENDED = 0x06,
    OP_UNDEFINED = 0x07,
    OP_SAME_VALUE = 0x08,
    OP_REGISTER = 0x09,
    OP_REMEMBER = 0x0a,
    OP_RESTORE_STATE = 0x0b,
    OP_DEF_CFA = 0x0c,
    OP_DEF_CFA_REGISTER = 0x0d,
    OP_DEF_CFA_OFFSET = 0x0e,
    OP_DEF_CFA_EXPRESSION = 0x0f,
    OP_EXPRESSION = 0x10,
    OP_OFFSET_SF = 0x11,
    OP_DEF_CFA_SF = 0x12,
    OP_DEF_CFA_OFFSET_SF = 0x13,
    OP_VAL_OFFSET = 0x14,
    OP_VAL_OFFSET_SF = 0x15,
    OP_VAL_EXPRESSION = 0x16,
    OP_GNU_ARGS_SIZE = 0x2e,
};

enum { EXPR_DEREF = 0x06, EXPR_BREG_BP = 0x76 };

enum { REG_BP_COLUMN = 6, REG_SP_COLUMN = 7, REG_RA_COLUMN = 16 };

/* The columns a walk needs; all others are read and forgotten. */
enum column { COLUMN_BP, COLUMN_SP, COLUMN_RA, COLUMN_COUNT, COLUMN_IGNORED = COLUMN_COUNT };

enum saved { SAVED_SAME, SAVED_AT_CFA, SAVED_AT_BP, SAVED_UNDEFINED, SAVED_OTHER };
enum cfa { CFA_REGISTER, CFA_AT_BP, CFA_OTHER };

struct row {
    enum cfa cfa;
    uint64_t cfa_register;
    int64_t cfa_offset;
    struct {
        enum saved how;
        int64_t offset; /* from the CFA */
    } columns[COLUMN_COUNT + 1];
};

enum { REMEMBERED_MAX = 4 }; /* compilers nest one or two; deeper is left to libunwind */

struct machine {
    const struct fde *fde;
    uintptr_t location, target;
    struct row row, initial;
    struct row remembered[REMEMBERED_MAX];
    unsigned n_remembered;
    bool ok;
};

static enum column column_of(uint64_t reg)
{
    switch (reg) {
    case REG_BP_COLUMN:
        return COLUMN_BP;
    case REG_SP_COLUMN:
        return COLUMN_SP;
    case REG_RA_COLUMN:
        return COLUMN_RA;
    default:
        return COLUMN_IGNORED;
    }
}

static void save(struct machine *machine, uint64_t reg, enum saved how, int64_t offset)
{
    enum column column = column_of(reg);
    machine->row.columns[column].how = how;
    machine->row.columns[column].offset = offset;
}

static void restore(struct machine *machine, uint64_t reg)
{
    enum column column = column_of(reg);
    machine->row.columns[column] = machine->initial.columns[column];
}

/* Wraps like the hardware would: nonsense offsets are refused when the rule is packed. */
static int64_t scaled(const struct machine *machine, int64_t factored)
{
    return (int64_t)((uint64_t)factored * (uint64_t)machine->fde->data_align);
}

static void advance(struct machine *machine, uint64_t delta)
{
    machine->location += delta * machine->fde->code_align;
}

static void remember(struct machine *machine)
{
    if (machine->n_remembered == REMEMBERED_MAX)
        machine->ok = false;
    else
        machine->remembered[machine->n_remembered++] = machine->row;
}

static void recall(struct machine *machine)
{
    if (machine->n_remembered == 0)
        machine->ok = false;
    else
        machine->row = machine->remembered[--machine->n_remembered];
}

static struct bytes open_block(struct bytes *program)
{
    uint64_t n = bytes_uleb(program);
    struct bytes block = *program;
    bytes_skip(program, n);
    block.limit = program->at;
    block.ok = program->ok;
    return block;
}

static void define_cfa(struct machine *machine, uint64_t reg, int64_t offset)
{
    machine->row.cfa = CFA_REGISTER;
    machine->row.cfa_register = reg;
    machine->row.cfa_offset = offset;
}

/* The linker's, for .plt: CFA = SP + 8, and 8 more behind the stub's push, that is, from byte k of
 * its 16 on. Its addresses are known here, so it is as plain as any. */
static bool define_cfa_in_plt(struct machine *machine, struct bytes block)
{
    static const uint8_t before[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a}; /* SP+8, rip+0, 15, and */
    static const uint8_t after[] = {0x2a, 0x33, 0x24, 0x22};        /* ≥, 3, <<, + */
    enum {
        N_BEFORE = sizeof(before),
        N_ALL = sizeof(before) + 1 + sizeof(after),
        LITERAL_0 = 0x30
    };
    if (!block.ok || block.limit - block.at != N_ALL ||
        memcmp((const void *)block.at, before, sizeof(before)) != 0 ||
        memcmp((const void *)(block.at + N_BEFORE + 1), after, sizeof(after)) != 0)
        return false;
    bytes_skip(&block, N_BEFORE);
    bool is_pushed = (machine->target & 15) >= bytes_unsigned(&block, 1) - LITERAL_0;
    define_cfa(machine, REG_SP_COLUMN, is_pushed ? 16 : 8);
    return true;
}

/* gcc's realigned stacks: CFA = *(BP + n). */
static void define_cfa_expression(struct machine *machine, struct bytes block)
{
    if (define_cfa_in_plt(machine, block))
        return;
    uint64_t base = bytes_unsigned(&block, 1);
    int64_t offset = bytes_sleb(&block);
    bool is_known = base == EXPR_BREG_BP && bytes_unsigned(&block, 1) == EXPR_DEREF && block.ok &&
                    block.at == block.limit;
    machine->row.cfa = is_known ? CFA_AT_BP : CFA_OTHER;
    machine->row.cfa_offset = offset;
}

/* And theirs for BP: saved at *BP. */
static void save_expression(struct machine *machine, uint64_t reg, struct bytes block)
{
    uint64_t base = bytes_unsigned(&block, 1);
    int64_t offset = bytes_sleb(&block);
    bool is_known = base == EXPR_BREG_BP && offset == 0 && block.ok && block.at == block.limit;
    save(machine, reg, is_known ? SAVED_AT_BP : SAVED_OTHER, 0);
}

static bool execute_location(struct machine *machine, struct bytes *program, uint8_t op)
{
    switch (op) {
    case OP_SET_LOC:
        machine->location = fde_pointer(program, machine->fde->pointer_format);
        return true;
    case OP_ADVANCE1:
        advance(machine, bytes_unsigned(program, 1));
        return true;
    case OP_ADVANCE2:
        advance(machine, bytes_unsigned(program, 2));
        return true;
    case OP_ADVANCE4:
        advance(machine, bytes_unsigned(program, 4));
        return true;
    default:
        return false;
    }
}

static bool execute_cfa(struct machine *machine, struct bytes *program, uint8_t op)
{
    struct row *row = &machine->row;
    uint64_t reg;
    switch (op) {
    case OP_DEF_CFA:
        reg = bytes_uleb(program);
        define_cfa(machine, reg, (int64_t)bytes_uleb(program));
        return true;
    case OP_DEF_CFA_SF:
        reg = bytes_uleb(program);
        define_cfa(machine, reg, scaled(machine, bytes_sleb(program)));
        return true;
    case OP_DEF_CFA_REGISTER:
        define_cfa(machine, bytes_uleb(program), row->cfa_offset);
        return true;
    case OP_DEF_CFA_OFFSET:
        row->cfa_offset = (int64_t)bytes_uleb(program);
        return true;
    case OP_DEF_CFA_OFFSET_SF:
        row->cfa_offset = scaled(machine, bytes_sleb(program));
        return true;
    case OP_DEF_CFA_EXPRESSION:
        define_cfa_expression(machine, open_block(program));
        return true;
    default:
        return false;
    }
}

static bool execute_register(struct machine *machine, struct bytes *program, uint8_t op)
{
    uint64_t reg = bytes_uleb(program);
    switch (op) {
    case OP_OFFSET_EXTENDED:
        save(machine, reg, SAVED_AT_CFA, scaled(machine, (int64_t)bytes_uleb(program)));
        return true;
    case OP_OFFSET_SF:
        save(machine, reg, SAVED_AT_CFA, scaled(machine, bytes_sleb(program)));
        return true;
    case OP_RESTORE_EXTENDED:
        restore(machine, reg);
        return true;
    case OP_UNDEFINED:
        save(machine, reg, SAVED_UNDEFINED, 0);
        return true;
    case OP_SAME_VALUE:
        save(machine, reg, SAVED_SAME, 0);
        return true;
    case OP_EXPRESSION:
        save_expression(machine, reg, open_block(program));
        return true;
    case OP_REGISTER:
    case OP_VAL_OFFSET:
    case OP_VAL_OFFSET_SF:
        bytes_uleb(program); /* one LEB of either sign: skipped alike */
        save(machine, reg, SAVED_OTHER, 0);
        return true;
    case OP_VAL_EXPRESSION:
        open_block(program);
        save(machine, reg, SAVED_OTHER, 0);
        return true;
    default:
        return false;
    }
}

static bool execute_other(struct machine *machine, struct bytes *program, uint8_t op)
{
    switch (op) {
    case OP_NOP:
        return true;
    case OP_REMEMBER:
        remember(machine);
        return true;
    case OP_RESTORE_STATE:
        recall(machine);
        return true;
    case OP_GNU_ARGS_SIZE: /* matters to whoever resumes in the frame, not to its caller */
        bytes_uleb(program);
        return true;
    default:
        return execute_location(machine, program, op) || execute_cfa(machine, program, op) ||
               execute_register(machine, program, op);
    }
}

static void execute(struct machine *machine, struct bytes *program)
{
    uint8_t op = (uint8_t)bytes_unsigned(program, 1);
    uint8_t operand = op & (uint8_t)~OP_MASK;
    switch (op & OP_MASK) {
    case OP_ADVANCE:
        advance(machine, operand);
        break;
    case OP_OFFSET:
        save(machine, operand, SAVED_AT_CFA, scaled(machine, (int64_t)bytes_uleb(program)));
        break;
    case OP_RESTORE:
        restore(machine, operand);
        break;
    default:
        if (!execute_other(machine, program, op))
            machine->ok = false;
    }
}

/* Until the location passes the target: the row is then the target's, for what moves the location
 * leaves the row alone. */
static bool run(struct machine *machine, struct bytes program)
{
    while (bytes_left(&program) && machine->ok && machine->location <= machine->target)
        execute(machine, &program);
    return machine->ok && program.ok;
}

static uint64_t rule_from(const struct row *row, bool is_signal_frame)
{
    if (is_signal_frame)
        return RULE_SIGNAL;
    if (row->columns[COLUMN_RA].how == SAVED_UNDEFINED)
        return RULE_OUTERMOST;
    bool is_usual = row->columns[COLUMN_RA].how == SAVED_AT_CFA &&
                    row->columns[COLUMN_RA].offset == -8 &&
                    row->columns[COLUMN_SP].how == SAVED_SAME;
    enum saved bp = row->columns[COLUMN_BP].how;
    if (!is_usual)
        return RULE_NONE;
    if (row->cfa == CFA_AT_BP && bp == SAVED_AT_BP)
        return rule_of(RULE_REALIGNED, row->cfa_offset, 0);
    bool has_base = row->cfa_register == REG_SP_COLUMN || row->cfa_register == REG_BP_COLUMN;
    if (row->cfa != CFA_REGISTER || !has_base || (bp != SAVED_SAME && bp != SAVED_AT_CFA))
        return RULE_NONE;
    uint64_t flags = (row->cfa_register == REG_BP_COLUMN ? RULE_BASE_IS_BP : 0) |
                     (bp == SAVED_AT_CFA ? RULE_BP_IS_SAVED : 0);
    return rule_of(RULE_PLAIN | flags, row->cfa_offset, row->columns[COLUMN_BP].offset);
}

uint64_t cfi_rule(const struct cfi_tables *tables, uintptr_t address)
{
    struct fde fde;
    enum fde_status status = tables->header ? fde_find(tables, address, &fde) : FDE_NOT_COVERED;
    if (status != FDE_FOUND)
        return status == FDE_NOT_COVERED ? RULE_GUESS : RULE_NONE;
    struct machine machine; /* not cleared as a whole: `remembered` is most of it */
    machine.fde = &fde;
    machine.location = fde.begin;
    machine.target = address;
    machine.row = (struct row){.cfa = CFA_REGISTER};
    machine.initial = machine.row;
    machine.n_remembered = 0;
    machine.ok = true;
    if (!run(&machine, fde.common))
        return RULE_NONE;
    machine.initial = machine.row;
    if (!run(&machine, fde.own))
        return RULE_NONE;
    return rule_from(&machine.row, fde.is_signal_frame);
}
