/* SPDX-License-Identifier: Apache-2.0 */
/* See donors.h. */
#include "profile/donors.h"

#include <stdlib.h>
#include <string.h>

#include "python/python.h"

enum {
  BUCKETS = 1024, /* of each table; a power of two */
  CHOICE = 8, /* donors looked at, the newest: a program goes from one thing to the next */
};

/* By how much a donor and the sample must be alike, best first. */
enum likeness {
  SAME_PATH, /* thread and all native functions */
  SAME_CALL, /* thread and native functions up to the C function that Python code has called */
  SAME_BASE, /* thread and native functions up to the innermost interpreter frame */
  POOL_PATH, /* of any thread of the same pool */
  POOL_CALL,
  POOL_BASE,
  LIKENESSES,
};

/* A chain links a donor to an older one; that has been written over when its number differs. */
struct link {
  int32_t index;
  uint64_t number;
};

struct donor {
  uint64_t number; /* of the sample, counted from 1; 0: empty */
  uint64_t keys[LIKENESSES];
  struct link older[LIKENESSES];
  uint32_t burst;
  uint32_t used;
  uint32_t count;
  uint32_t python;  /* Python frames among them */
  struct pm_frame_key *frames; /* root first */
};

static struct {
  struct donor *all; /* PM_DONORS of them in a ring; NULL: off */
  struct link heads[LIKENESSES][BUCKETS];
  uint64_t taken;
  uint32_t burst;
  uint64_t from; /* in this burst */
} donors;

bool pm__donors_begin(void) {
  pm__donors_end();
  donors.all = calloc(PM_DONORS, sizeof *donors.all);
  return donors.all != NULL;
}

void pm__donors_end(void) {
  for (uint32_t i = 0; donors.all != NULL && i < PM_DONORS; i++) free(donors.all[i].frames);
  free(donors.all);
  memset(&donors, 0, sizeof donors);
}

void pm__donors_forked(void) { memset(&donors, 0, sizeof donors); }

/* Threads that differ in their numbers only do the same work. */
uint64_t pm__donors_pool(const char *name) {
  uint64_t hash = 1;
  for (; *name != '\0'; name++) {
    if (*name >= '0' && *name <= '9') continue;
    hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
  }
  return hash;
}

bool pm__donors_are_on(void) { return donors.all != NULL; }

void pm__donors_next_burst(uint64_t from) {
  donors.burst++;
  donors.from = from;
}

static uint64_t key_of(uint64_t hash, uint64_t owner, enum likeness likeness) {
  uint64_t key = (hash ^ (owner + 1) * UINT64_C(0x9E3779B97F4A7C15)) + (uint64_t)likeness;
  return key * UINT64_C(0xD6E8FEB86659FD93);
}

static void keys_of(struct pm_donor_owner owner, const struct pm_merged *merged,
                    uint64_t keys[LIKENESSES]) {
  const uint64_t hashes[] = {merged->path, merged->call, merged->base};
  for (int i = SAME_PATH; i <= SAME_BASE; i++) {
    keys[i] = key_of(hashes[i], (uint64_t)owner.tid, (enum likeness)i);
    keys[i + POOL_PATH] = key_of(hashes[i], owner.pool, (enum likeness)i);
  }
}

static struct link *head_of(enum likeness likeness, uint64_t key) {
  return &donors.heads[likeness][key >> 32 & (BUCKETS - 1)];
}

static struct donor *follow(struct link link) {
  if (link.number == 0) return NULL;
  struct donor *donor = &donors.all[link.index];
  return donor->number == link.number ? donor : NULL;
}

static void keep(struct pm_donor_owner owner, const struct pm_merged *merged) {
  uint32_t count = merged->stack.count;
  if (count > PM_DONOR_FRAMES) return;
  uint32_t index = (uint32_t)(donors.taken % PM_DONORS);
  struct donor *donor = &donors.all[index];
  struct pm_frame_key *frames = realloc(donor->frames, sizeof *frames * count);
  if (frames == NULL) return;
  memcpy(frames, merged->stack.frames, sizeof *frames * count);
  donor->frames = frames;
  donor->count = count;
  donor->python = merged->stack.python;
  donor->number = ++donors.taken;
  memset(donor->older, 0, sizeof donor->older);
  donor->burst = donors.burst;
  donor->used = 0;
  keys_of(owner, merged, donor->keys);
  for (int i = 0; i < LIKENESSES; i++) {
    if (i % POOL_PATH == SAME_BASE && !merged->plain) continue; /* not a typical one */
    struct link *head = head_of((enum likeness)i, donor->keys[i]);
    donor->older[i] = *head;
    *head = (struct link){.index = (int32_t)index, .number = donor->number};
  }
}

static struct donor *less_used(struct donor *best, struct donor *donor) {
  return best == NULL || donor->used < best->used ? donor : best;
}

/*
 * Of the newest ones the one that has been used least, if it can be one with the very
 * native functions of the sample. Old ones only if asked for.
 */
static struct donor *choose(enum likeness likeness, const uint64_t keys[LIKENESSES], bool old) {
  struct donor *best = NULL, *twin = NULL;
  struct donor *donor = follow(*head_of(likeness, keys[likeness]));
  for (int seen = 0; donor != NULL && seen < CHOICE; donor = follow(donor->older[likeness])) {
    if (donor->keys[likeness] != keys[likeness]) continue;
    if (!old && donors.burst - donor->burst > PM_DONOR_BURSTS) break;
    best = less_used(best, donor);
    if (donor->keys[POOL_PATH] == keys[POOL_PATH]) twin = less_used(twin, donor);
    seen++;
  }
  return twin != NULL ? twin : best;
}

/* What will do for a sample, best first. */
struct wish {
  enum likeness likeness;
  bool old;
};

/* Where the interpreter itself works, what the thread has done just before tells more. */
static const struct wish plain_wishes[] = {
    {SAME_BASE, false}, {POOL_BASE, false}, {SAME_BASE, true}, {POOL_BASE, true}};

/*
 * A C function was called by some Python function: a donor that calls the same is looked for,
 * also among old ones. Without one, CPU in the interpreter's own functions goes where the rest
 * of its CPU goes; that in other libraries stays without a Python function.
 */
static const struct wish native_wishes[] = {
    {SAME_PATH, false}, {SAME_CALL, false}, {SAME_PATH, true}, {SAME_CALL, true},
    {POOL_PATH, false}, {POOL_CALL, false}, {POOL_PATH, true}, {POOL_CALL, true},
    {SAME_BASE, false}, {POOL_BASE, false}, {SAME_BASE, true}, {POOL_BASE, true}};
enum { BASE_WISHES = 4 };

static struct donor *find(struct pm_donor_owner owner, const struct pm_merged *merged) {
  const struct wish *wishes = merged->plain ? plain_wishes : native_wishes;
  size_t count = merged->plain ? PM_COUNT_OF(plain_wishes) : PM_COUNT_OF(native_wishes);
  if (!merged->runtime) count -= BASE_WISHES;
  uint64_t keys[LIKENESSES];
  keys_of(owner, merged, keys);
  for (size_t i = 0; i < count; i++) {
    struct donor *donor = choose(wishes[i].likeness, keys, wishes[i].old);
    if (donor != NULL) return donor;
  }
  return NULL;
}

/* A stack that never was is not made up: the sample's is the donor's, as a whole. */
static void complete(struct pm_merged *merged, struct donor *donor) {
  struct pm_merge_output *stack = &merged->stack;
  memcpy(stack->frames, donor->frames, sizeof *stack->frames * donor->count);
  stack->count = donor->count;
  stack->python = donor->python;
  stack->bare = false;
  merged->estimated = true;
  donor->used++;
}

void pm__donors_take(struct pm_donor_owner owner, struct pm_merged *merged) {
  const struct pm_merge_output *stack = &merged->stack;
  if (donors.all == NULL || stack->own || !stack->interpreted) return;
  if (stack->python > 0) {
    if (owner.time >= donors.from) keep(owner, merged);
  } else if (!pm__python_had_subinterpreters()) {
    struct donor *donor = find(owner, merged);
    if (donor != NULL) complete(merged, donor);
  }
}
