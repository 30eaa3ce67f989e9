/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While events are off a sample has its native stack only. Its Python frames are then taken
 * from another sample, its donor: a recent one, taken with events on, of the same thread (or,
 * where it has none, its pool) and with the same native functions, as near as there is one. Donors take turns, so
 * the shares of what was seen stay as they were seen. The whole stack is the donor's, so no
 * stack is made up. (Hot-deck imputation, in the terms of statistics.)
 *
 * Owner: the collector, under the session's profile lock.
 */
#ifndef PM_PROFILE_DONORS_H
#define PM_PROFILE_DONORS_H

#include "profile/profile.h"

enum {
  PM_DONORS = 2048,         /* samples that are kept */
  PM_DONOR_FRAMES = 512,    /* one with more is none */
  PM_DONOR_BURSTS = 8,      /* how many times events came on since makes one old */
};

/* Whose sample it is, and when it was taken. */
struct pm_donor_owner {
  uint64_t time;
  int32_t tid;
  uint64_t pool;
};

/* The threads whose names differ in digits only are a pool, and may help each other out. */
uint64_t pm__donors_pool(const char *name);

bool pm__donors_are_on(void);
/* Switches them on (or off: they are forgotten). False: memory is short. */
bool pm__donors_begin(void);
void pm__donors_end(void);
/*
 * Events have come on again; donors are samples from `from` on (CLOCK_MONOTONIC, ns). Before that
 * the interpreter instruments what it runs, and functions that do little look busy.
 */
void pm__donors_next_burst(uint64_t from);

/*
 * Keeps a sample that has Python frames; gives one that has none those of a donor. Does nothing
 * while they are off, for samples in Pyrometer's own code, or where no interpreter ran.
 */
void pm__donors_take(struct pm_donor_owner owner, struct pm_merged *merged);

/* In a forked child: all of it was the parent's. */
void pm__donors_forked(void);

#endif /* PM_PROFILE_DONORS_H */
