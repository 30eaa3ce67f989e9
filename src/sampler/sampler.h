/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampler: which threads there are, and a CPU timer on each.
 * Called by: session (collector thread, start and stop), and by a Python thread
 * at its first event. Locks: one mutex around the registry of threads; no call
 * out of this folder is made while it is held.
 */
#ifndef PM_SAMPLER_SAMPLER_H
#define PM_SAMPLER_SAMPLER_H

#include <time.h>

#include "base/base.h"
#include "signal/thread.h"

enum pm_name_source { PM_NAME_NONE, PM_NAME_COMM, PM_NAME_PYTHON };
enum { PM_THREAD_NAME_BYTES = 256 };

/* The profiles that one sample may be booked in: the session's, and the report's of one interval. */
enum { PM_BOOK_SESSION, PM_BOOK_REPORT, PM_BOOKS };

/* A thread's place in one of them. */
struct pm_booking {
  uint32_t row;         /* its row + 1; 0: none yet */
  uint64_t cpu_base;    /* CPU of the thread when the book was opened, ns */
  uint64_t handler_base; /* handler time then, ns */
};

/*
 * A thread of the process as the sampler keeps it. The collector alone takes
 * blocks back to the pool (pm__sampler_retire), so it may keep pointers meanwhile.
 */
struct pm_sampled {
  struct pm_thread thread; /* first: the handler's part */
  timer_t timer;
  bool has_timer;
  bool young;          /* still at the fastest rate; see start_timer */
  _Atomic(const char *) reason; /* why it has no timer of its own; NULL when it has */
  uint64_t cpu_base;   /* CPU used before the session saw it begin, ns */
  _Atomic uint64_t cpu_now; /* thread's CPU clock when last read, ns */
  _Atomic uint32_t name_source;
  char name[PM_THREAD_NAME_BYTES]; /* UTF-8; guarded by the registry's lock */
  struct pm_shadow *spare_shadow; /* mapped, of an earlier thread */
  bool seen;           /* by the scan under way */
  bool gone;           /* not in the task list any more: may be retired once drained */
  struct pm_booking booking[PM_BOOKS]; /* the collector's */
};

struct pm_sampler_options {
  uint32_t rate_hz;
  uint32_t python_threads; /* how many threads may have a shadow stack */
};

/* Installs the handler (once a process) and finds today's threads; no timer runs yet. 0 or PYROMETER_E_*. */
int pm__sampler_start(const struct pm_sampler_options *options);
/* Signals may come from here on: arms a timer on every thread found. */
void pm__sampler_arm(void);
/* From now on `rate_hz` samples per second of CPU, on all threads. Any thread. */
void pm__sampler_pace(uint32_t rate_hz);
/* Stops all timers and waits until no handler runs. The handler stays installed. */
void pm__sampler_disarm(void);
/* Gives all blocks back to the pool. */
void pm__sampler_reset(void);

/* Threads that are never sampled: our own. */
enum pm_own_thread { PM_OWN_COLLECTOR, PM_OWN_GOVERNOR, PM_OWN_THREADS };
void pm__sampler_exclude(enum pm_own_thread which, int32_t tid);

/* Notes the calling thread; false beyond PM_THREADS_MAX or when not started. */
bool pm__sampler_register(void);
/* The same, and its shadow stack, made if needed; NULL when all are taken. */
struct pm_shadow *pm__sampler_shadow(void);
/* The same for a thread that a scan has found; NULL when none has. */
struct pm_shadow *pm__sampler_shadow_of(int32_t tid);
/* Sets a thread's Python name. */
void pm__sampler_name(int32_t tid, const char *name);

/*
 * Compares the registry with /proc/self/task: registers new threads, reads every
 * thread's CPU clock, marks ended threads PM_THREAD_DEAD. Collector only.
 */
void pm__sampler_scan(void);
/* Visits every block in use, dead ones too. Collector only. */
void pm__sampler_each(void (*visit)(void *context, struct pm_sampled *sampled), void *context);
/* Has the thread left the kernel's list, so that its tid names nobody or somebody else? */
bool pm__sampler_is_gone(struct pm_sampled *sampled);
/* Returns a dead and drained block to the pool. Collector only. */
void pm__sampler_retire(struct pm_sampled *sampled);
/* Copies the thread's name into `name` (PM_THREAD_NAME_BYTES); reads comm where Python gave none. */
void pm__sampler_copy_name(struct pm_sampled *sampled, char *name);
/* Why a thread that used CPU has no samples: a static string, or NULL when nothing is wrong. */
const char *pm__sampler_reason(struct pm_sampled *sampled);
/* Does any thread's hazard pointer name this snapshot? */
bool pm__sampler_tables_in_use(const struct pm_tables *tables);

/*
 * Makes sure that our signal has our handler still. If it has not, all timers get another
 * signal; facts say which one was lost.
 */
void pm__sampler_check_signal(void);

/* The signal in use, 0: none was ever installed. Any thread; AS-safe. */
int pm__sampler_signal(void);

struct pm_sampler_facts {
  int signal;             /* the signal number used */
  int signal_lost;        /* the one before, whose handler the program replaced; 0: none */
  uint32_t threads_beyond_limit; /* threads that found the registry full */
  uint32_t shadows_refused;      /* Python threads beyond python_threads */
  uint32_t timers_refused;       /* per-thread timers that failed (EAGAIN) */
  bool process_timer;            /* the shared timer runs */
  uint64_t lost[PM_LOST_KINDS];  /* signals that found no thread's block */
};
struct pm_sampler_facts pm__sampler_facts(void);

/* In a forked child: no timer is left there; forget everything. */
void pm__sampler_forked(void);

#endif /* PM_SAMPLER_SAMPLER_H */
