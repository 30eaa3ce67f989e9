/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of a session while it grows: threads, call tree, windows, accounting. */
#ifndef PM_PROFILE_PROFILE_H
#define PM_PROFILE_PROFILE_H

#include "base/base.h"
#include "profile/merge.h"
#include "profile/tree.h"
#include "profile/view.h"
#include "signal/ring.h"
#include "signal/thread.h"

enum {
  PM_WINDOWS_MAX = 60,         /* then pairs are joined, and a window lasts twice as long */
  PM_PROFILE_THREADS_MAX = 4096, /* rows kept apart; later ended threads share one row */
  PM_PROFILE_NAME_BYTES = 256,
};

/* Counters of the handler, summed over threads that have ended or read from a live one. */
struct pm_profile_counts {
  uint64_t signals, stored, lost[PM_LOST_KINDS], lost_ns, handler_ns, snapshot_failures;
  uint64_t events[PM_EVENT_KINDS], overflows, resyncs;
  uint32_t depth_max;
};

struct pm_profile_thread {
  char name[PM_PROFILE_NAME_BYTES];
  int32_t tid;
  bool main;
  const char *reason;     /* static string, or NULL */
  uint32_t root;          /* its node in the tree */
  uint64_t cpu_ns;        /* kernel's figure for the session so far */
  uint64_t sampled_ns;    /* weights of its samples and its handler time */
  uint64_t handler_ns;    /* booked on [pyrometer] so far */
  uint64_t unsampled_ns;  /* booked on (unsampled) so far */
  uint64_t samples;
  uint64_t unfollowed_ns; /* weights of its samples in a subinterpreter's Python code */
};

/* A record's frames, and what there is to count of it. */
struct pm_merged {
  struct pm_merge_output stack;
  uint32_t flags;       /* pm_walk_flag */
  uint32_t unknown_ids; /* Python frames whose code nobody registered */
  /* Hashes of the native functions from the root on: */
  uint64_t path;        /* all */
  uint64_t call;        /* up to the first few that the innermost interpreter frame has called */
  uint64_t base;        /* up to the innermost interpreter frame */
  bool runtime;         /* beyond that there is only code of the interpreter and the C library */
  bool plain;           /* and not much of it: there the interpreter itself works */
  bool estimated;       /* its Python frames are another sample's (donors.h) */
};

struct pm_profile_window {
  uint64_t start_ms, cpu_ns; /* unix ms; process CPU at its end minus at its start */
};

/* What is known of events, as sums since the session began, or since a profile did. */
struct pm_profile_events {
  bool paused;        /* they have been off in the session */
  uint64_t count;     /* all kinds */
  uint64_t on_ns;     /* process CPU while they were on */
  uint64_t switch_ns; /* what switching them off and on is reckoned to have cost */
  uint64_t bursts;    /* times they came on again */
};

struct pm_profile {
  struct pm_tree tree;
  struct pm_profile_thread *threads; /* row 0 is for threads that ended unseen */
  uint32_t thread_count, thread_room;
  struct pm_profile_window windows[PM_WINDOWS_MAX];
  uint32_t window_count;
  uint64_t window_ns;       /* how long a window lasts */
  uint64_t start_ns;        /* CLOCK_MONOTONIC */
  uint64_t start_ms;        /* unix ms */
  uint64_t end_ms;          /* 0 while it runs */
  uint64_t end_ns;
  uint64_t cpu_start_ns;    /* process CPU clock at the start */
  uint64_t cpu_ns;          /* process CPU since then */
  uint64_t window_cpu_ns;   /* process CPU booked to windows so far */
  uint64_t collector_ns;    /* CPU of our own thread */
  uint64_t own_ns;          /* weights of samples that stood in our own code */
  uint64_t samples, sampled_ns;
  uint64_t attributed, native_only, boundary_misses, truncated_stacks, unknown_ids;
  uint64_t complete;        /* samples whose native walk reached the root */
  uint64_t guessed;
  uint64_t estimated;       /* samples whose Python frames are another's (donors.h) */
  uint64_t seen;            /* samples with Python frames of their own */
  uint64_t unfollowed;      /* samples in a subinterpreter's Python code */
  uint64_t dropped;         /* samples that memory had no room for */
  uint32_t truncated_most;
  uint32_t rate_hz;
  struct pm_profile_events events, events_base;
  struct pm_profile_counts ended; /* of threads that are gone */
  /* Calls by code id when the profile began, and how many ids there were; NULL: none. */
  uint64_t *calls_before;
  uint32_t codes_before;
  struct pm_symbolizer *symbolizer; /* to look names up with; NULL: a new one for each view */
};

bool pm__profile_init(struct pm_profile *profile, uint32_t rate_hz);
/* Sampling begins: the accounts are kept from this instant on. */
void pm__profile_begin(struct pm_profile *profile);
/* The sums of the session when the profile begins, and later. */
void pm__profile_begin_events(struct pm_profile *profile, struct pm_profile_events sums);
void pm__profile_note_events(struct pm_profile *profile, struct pm_profile_events sums);
/* The share of the program's own CPU in which events were on, above 0 and up to 1. */
double pm__profile_events_share(const struct pm_profile *profile);
/* Calls before now are not this profile's. False when memory is short. */
bool pm__profile_begin_calls(struct pm_profile *profile);
void pm__profile_free(struct pm_profile *profile);

/* A row for a thread; its index, or 0 (the shared row) when there is no room. */
uint32_t pm__profile_add_thread(struct pm_profile *profile, int32_t tid, const char *name);

/* Joins a record's native and Python frames; the result serves every profile that books it. */
void pm__profile_merge(const struct pm_record *record, struct pm_merged *merged);
/* Books `ns` of CPU for a merged record on a thread. */
void pm__profile_book(struct pm_profile *profile, uint32_t thread, const struct pm_merged *merged,
                      uint64_t ns);

/* Why a thread has no samples or not all of its Python frames; "" when nothing is wrong. */
const char *pm__profile_reason(const struct pm_profile_thread *thread);

/*
 * Books what the kernel counted for a thread and no sample covers: handler time
 * on [pyrometer], the rest on (unsampled), in the current window. A live thread's
 * next sample is still to come: `slack_ns` of the rest are left for it.
 */
void pm__profile_settle_thread(struct pm_profile *profile, uint32_t thread, uint64_t cpu_ns,
                               uint64_t handler_ns, uint64_t slack_ns);
/* Books on row 0 what the process used and no row has: threads that came and went unseen. */
void pm__profile_settle_rest(struct pm_profile *profile);

/* Opens the window that `now` (CLOCK_MONOTONIC, ns) lies in, idle ones in between included. */
void pm__profile_roll(struct pm_profile *profile, uint64_t now);

/* What the profile's events have cost by the price of one, ns of CPU. */
uint64_t pm__profile_events_ns(const struct pm_profile *profile);
/* Events of all kinds. */
uint64_t pm__profile_count_events(const struct pm_profile_counts *counts);
/* Adds a thread's counters to a sum. */
void pm__profile_count(struct pm_profile_counts *sum, const struct pm_thread *thread);

/*
 * Freezes the profile into a view with names; `counts` is the sum over all
 * threads, `diagnostics` is taken over. NULL when memory is short. Freed with
 * pm__view_free.
 */
struct pm_view *pm__profile_view(const struct pm_profile *profile, json_t *diagnostics);
void pm__view_free(struct pm_view *view);

/* CPU that Pyrometer used, as far as it was seen, in percent of the process's. */
double pm__profile_overhead(const struct pm_profile *profile);

#endif /* PM_PROFILE_PROFILE_H */
