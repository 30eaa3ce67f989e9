/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind: from loaded objects to the tables a handler can walk with.
 * Called by: session (collector thread, and once at start). Never from a handler.
 * Locks: two mutexes of its own, one of whoever builds, one around what others read;
 * neither is held while the loader's lock is held except inside dl_iterate_phdr's
 * callback, which copies addresses only. None who looks up waits for a table to be built.
 */
#ifndef PM_UNWIND_UNWIND_H
#define PM_UNWIND_UNWIND_H

#include "base/base.h"
#include "signal/table.h"
#include "signal/walk.h"

enum { PM_BUILD_ID_MAX = 32 };

/* A mapped ELF object. Lives from its first sight to pm__unwind_stop, though unloaded. */
struct pm_object {
  uint32_t id;             /* 1, 2, ... never reused in a session */
  uintptr_t bias;          /* run-time address - address in the file */
  uintptr_t text_lo, text_hi; /* executable range at run time */
  const char *path;        /* as the loader names it; the executable's real path; "[vdso]" */
  uint8_t build_id[PM_BUILD_ID_MAX];
  uint8_t build_id_size;   /* 0: none */
};

/* Where a pc lies. */
struct pm_location {
  const struct pm_object *object; /* NULL: in no known object (JIT code, or gone) */
  uint64_t rva;                   /* pc - bias */
  uint64_t function_rva;          /* start of the FDE's range, or rva where no FDE covers it */
  bool has_function;              /* function_rva comes from an FDE */
};

/*
 * Finds the loaded objects and builds tables for those in `first` (addresses
 * inside them, `first_count` of them) before it returns; pm__unwind_refresh
 * builds the rest. What an earlier session has built is still there unless
 * pm__unwind_stop came between. 0 or PYROMETER_E_MEMORY.
 */
int pm__unwind_start(const uintptr_t *first, size_t first_count);

/* Notes objects that came or went and publishes new tables; cheap when nothing did. True if it published. */
bool pm__unwind_refresh(void);

/* About how long that will be for what is known and not built yet, in ns, as the rest took. */
uint64_t pm__unwind_left_ns(void);

/* Looks an address up in the newest tables. For a return address pass pc - 1. */
struct pm_location pm__unwind_locate(uintptr_t pc);

/* Calls `visit` for every object ever seen in the session. */
void pm__unwind_each_object(void (*visit)(void *context, const struct pm_object *object),
                            void *context);

/*
 * The calling function's own stack, as pm__walk_native gives it, without a
 * signal. `walk->pc[0]` lies in the caller of pm__unwind_here.
 */
void pm__unwind_here(struct pm_walk *walk);

/* What was built: for diagnostics and bench. */
struct pm_unwind_statistics {
  uint32_t objects;
  uint64_t rows;
  uint64_t bytes;
  uint64_t build_ns;
  uint64_t text_bytes;
  uint32_t rejected; /* FDEs or objects that did not parse */
};
struct pm_unwind_statistics pm__unwind_statistics(void);

/*
 * The snapshot that handlers use, as a hazard: acquire stores it in *hazard
 * before it is used. Implemented in signal/table.c; async-signal-safe.
 * const struct pm_tables *pm__tables_acquire(_Atomic(const struct pm_tables *) *hazard);
 * void pm__tables_release(_Atomic(const struct pm_tables *) *hazard);
 *
 * `in_use` answers whether any hazard names a snapshot; the sampler gives it.
 */
void pm__unwind_set_in_use(bool (*in_use)(const struct pm_tables *tables));

/* Frees everything. No handler may run any more. */
void pm__unwind_stop(void);

/*
 * In a forked child: another thread may have been building, so all is left where it is
 * and begun anew. AS-safe.
 */
void pm__unwind_forked(void);

#endif /* PM_UNWIND_UNWIND_H */
