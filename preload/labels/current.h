/* SPDX-License-Identifier: MIT
 * The labels of one thread: what the API set, what it inherited, its name, id and start routine.
 *
 * Place: labels/; written by api.c and the thread doors, read by gather.c at a sample.
 * Threads: a block belongs to its thread, only that thread touches it. Signals: a change that
 * interrupts another change is refused; `version` tells a reader that a handler changed something
 * under it. Allocation: blocks and slots come from REGION_KEEP pools; setting a label that has a
 * slot allocates nothing. Failure: no memory means no label (-1), never a wrong one.
 */
#ifndef LABELPROF_LABELS_CURRENT_H
#define LABELPROF_LABELS_CURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"

enum label_kind { LABEL_TEXT, LABEL_NUMBER, LABEL_SYMBOL };

struct label_slot {
    uint8_t is_set; /* written last: a handler that samples sees a whole label or none. An unset
                       slot keeps its key, for the next time; no two slots have the same */
    uint8_t kind;   /* LABEL_TEXT or LABEL_NUMBER */
    uint8_t key_bytes;
    uint16_t value_bytes; /* of the text, or of the number's unit */
    int64_t number;
    char key[LABEL_KEY_BYTES + 1]; /* with its NUL */
    char value[LABEL_VALUE_BYTES];
};

struct thread_block {
    struct label_slot *slots[LABELS_MAX]; /* the first n_slots exist; a slot is kept when unset */
    uint32_t n_slots;
    struct label_slot *recent; /* the slot found last: programs set and unset one key in turn */
    uint32_t version; /* +1 before and after each change */
    bool is_changing;
    bool is_name_known;
    uint32_t names_generation; /* of current_names_changed when `name` was read */
    uint32_t tid;              /* 0: not asked yet */
    uintptr_t start_routine;   /* 0: unknown */
    uint64_t start_frame;      /* start_routine with its module; 0: not looked up yet */
    char name[16];
};

bool current_open(void); /* once, while the regions are being laid out */

/* This thread's block, made on first use; NULL: no memory. Inside the profiler only. */
struct thread_block *current_block(void);
/* Gives the block back. The thread's last act. */
void current_forget(void);

/* 0 done, -1 refused (the contract's rules on keys, count and length). Outside the profiler. */
int current_set_text(const char *key, const char *value, size_t value_bytes);
int current_set_number(const char *key, long number, const char *unit);
int current_unset(const char *key);

/* For LABELPROF_SCOPE: one key's label as it was, to be put back. */
struct label_before {
    struct label_slot slot;
};
int current_replace_text(const char *key, const char *value, struct label_before *ret_before);
void current_put_back(const struct label_before *before);

/* A thread's API labels as a counted object, to carry with a task or to a new thread. */
struct label_capture;
struct label_capture *current_capture(void); /* NULL: none, or no memory */
int current_attach(const struct label_capture *capture); /* NULL: none */
void current_release(struct label_capture *capture);

/* The calling thread's name became `name`; another thread's name changed (it reads its own anew). */
void current_name_is(const char *name);
void current_names_changed(void);
/* The name right now, asked of the kernel at most once per change. */
const char *current_name(struct thread_block *block);

#endif
