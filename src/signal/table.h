/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled unwind tables as the handler reads them, and the pc cache.
 *
 * Owner:    the collector builds a snapshot off the signal path and publishes it.
 * Readers:  handlers, through pm__tables_acquire / pm__tables_release.
 * Ordering: seq_cst publish and hazard pointer (thread->tables); a snapshot is
 *           freed when no thread's hazard names it.
 */
#ifndef PM_SIGNAL_TABLE_H
#define PM_SIGNAL_TABLE_H

#include "base/base.h"

enum pm_rule_kind {
  PM_RULE_NONE, /* no CFI here */
  PM_RULE_SP,   /* CFA = stack pointer + offset */
  PM_RULE_FP,   /* CFA = frame pointer + offset */
  PM_RULE_AUX,  /* CFA = aux + offset */
  PM_RULE_ODD,  /* see the side table */
  PM_RULE_ROOT, /* the outermost function of a thread: it has no caller */
};

/*
 * How to find a frame's caller, from one pc up to the next. The return address
 * lies at CFA - 8; fp and aux lie at CFA + 8 * their value, 0 = not changed. For
 * PM_RULE_ODD the other 28 bits are the index in the side table.
 */
struct pm_rule {
  uint16_t head; /* kind | CFA offset / 8 << 4 */
  int8_t fp;
  int8_t aux;
};

static inline unsigned pm__rule_kind(struct pm_rule rule) { return rule.head & 15u; }
static inline uintptr_t pm__rule_offset(struct pm_rule rule) {
  return (uintptr_t)(rule.head >> 4) * 8;
}
static inline uint32_t pm__rule_odd(struct pm_rule rule) {
  return (uint32_t)(rule.head >> 4) | (uint32_t)(uint8_t)rule.fp << 12 |
         (uint32_t)(uint8_t)rule.aux << 20;
}

/* Where a value of the caller is, for rules that do not fit in four bytes. */
enum pm_place_kind {
  PM_PLACE_SAME,        /* not changed */
  PM_PLACE_AT_CFA,      /* stored at CFA + offset */
  PM_PLACE_CFA,         /* CFA + offset itself */
  PM_PLACE_REGISTER,    /* register + offset itself */
  PM_PLACE_AT_REGISTER, /* stored at register + offset, plus extra */
  PM_PLACE_PLT, /* register + offset, and a word more from byte `extra` of a 16-byte slot on */
  PM_PLACE_UNDEFINED, /* the caller's is gone; for the return address: no caller */
  PM_PLACE_UNKNOWN, /* a form this compiler does not know */
};

struct pm_place {
  uint8_t kind;
  uint8_t number; /* DWARF register number */
  uint16_t unused;
  int32_t offset;
  int32_t extra;
};

struct pm_odd_rule {
  struct pm_place cfa, ra, fp, aux;
  uint32_t signal; /* the frame that the kernel pushed to call a signal handler */
};

/* A rule holds from its pc up to the next row's. Side by side: a search ends on both at once. */
struct pm_row {
  uint32_t pc;
  struct pm_rule rule;
};

/* The range of an FDE. */
struct pm_function {
  uint32_t start, end;
};

/* One object's rules, sorted by pc; offsets count from the object's text_lo. */
struct pm_table {
  const struct pm_row *row; /* [rows] */
  const uint32_t *bucket; /* [buckets + 1] the first row at or behind every 256th byte */
  const struct pm_odd_rule *odd;
  const struct pm_function *function; /* [functions] sorted, not overlapping */
  uint32_t rows, buckets, odds, functions;
};

enum { PM_BUCKET_SHIFT = 8 };

/* The text of one object. */
struct pm_span {
  uintptr_t lo, hi;
  const struct pm_table *table; /* NULL: not built yet, or without CFI */
  const void *object; /* the unwinder's record of it */
  bool readable; /* not execute-only */
};

/* A snapshot of all objects, sorted by address. Immutable. */
struct pm_tables {
  uint32_t generation; /* changes when an address may have got a new meaning */
  uint32_t count;
  struct pm_span span[];
};

/*
 * Owner:    one thread's handler; nobody else reads it.
 * An entry holds when its pc and the snapshot's generation fit. A pc without a
 * rule is never kept, so a newly loaded object needs no new generation.
 */
enum { PM_PC_CACHE_BITS = 10 };
struct pm_pc_cache_entry {
  uintptr_t pc;
  uint32_t generation;
  struct pm_rule rule;
};
struct pm_pc_cache {
  struct pm_pc_cache_entry entry[1 << PM_PC_CACHE_BITS];
};

/* The newest snapshot, named in *hazard before it is used; NULL: none. Async-signal-safe. */
const struct pm_tables *pm__tables_acquire(_Atomic(const struct pm_tables *) *hazard);
void pm__tables_release(_Atomic(const struct pm_tables *) *hazard);

/* Makes `tables` the newest and returns the one before; the unwinder's side. */
const struct pm_tables *pm__tables_publish(const struct pm_tables *tables);

/* The span that covers pc, or NULL. */
const struct pm_span *pm__tables_span(const struct pm_tables *tables, uintptr_t pc);

/* The rule at pc, which lies in `span`. */
struct pm_rule pm__table_rule(const struct pm_span *span, uintptr_t pc);

/* The FDE range that covers pc, which lies in `span`; NULL: none does. */
const struct pm_function *pm__table_function(const struct pm_span *span, uintptr_t pc);

#endif /* PM_SIGNAL_TABLE_H */
