/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an export costs: a profile of 10 windows, written in every format into nowhere, and
 * before that the view that all formats are made from.
 *
 *   export_cost                 the shortest of some repeats, for three sizes
 *   export_cost STEP NODES      that step once, in measured(): for callgrind (run.sh)
 */
#include <pyrometer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "export/export.h"
#include "profile/profile.h"
#include "synthetic_view.h"
#include "unwind/unwind.h"

enum { WINDOWS = 10, THREADS = 8, DEPTH = 40, REPEATS = 7 };

static const char *const formats[] = {"sparkprofile", "pb.gz", "collapsed", "json"};
static const uint32_t sizes[] = {10000, 30000, 100000};

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % bound;
}

/* A walk through stacks: two of three steps call, the others return by up to 8 frames. */
static uint32_t next_depth(uint32_t depth) {
  if (depth < DEPTH && (depth == 0 || random_below(3) > 0)) return depth + 1;
  uint32_t back = 1 + random_below(8);
  return depth > back ? depth - back + 1 : 1;
}

/* One function in 20 nodes, as large services have it. */
static struct synthetic *make_view(uint32_t nodes) {
  struct synthetic *s = synthetic_new(WINDOWS);
  for (uint32_t i = 0; i < nodes / 20; i++) {
    synthetic_python(s, synthetic_text(s, "package.module%u", i % 97),
                     synthetic_text(s, "Class%u.method%u", i % 53, i),
                     synthetic_text(s, "/usr/lib/service/package/module%u.py", i % 97), i);
  }
  for (uint32_t t = 0, node = 0; t < THREADS; t++) {
    synthetic_thread(s, synthetic_text(s, "worker-%u", t), (int32_t)t + 70);
    for (; node < nodes / THREADS * (t + 1); node++) {
      uint32_t depth = next_depth(s->depth);
      while (s->depth >= depth) synthetic_leave(s);
      synthetic_enter(s, node % (nodes / 20));
      for (uint32_t w = 0; w < 3; w++) synthetic_burn(s, random_below(WINDOWS), 10000000);
    }
    while (s->depth > 0) synthetic_leave(s);
  }
  return s;
}

/* The largest object: whatever library we are in. */
static void note_largest(void *context, const struct pm_object *object) {
  const struct pm_object **largest = context;
  if (*largest == NULL ||
      object->text_hi - object->text_lo > (*largest)->text_hi - (*largest)->text_lo)
    *largest = object;
}

/* The same walk as a live profile, its frames native functions of one object. */
static void make_profile(struct pm_profile *profile, uint32_t nodes) {
  const struct pm_object *object = NULL;
  uint32_t path[DEPTH + 2];
  if (pm__unwind_start(NULL, 0) != 0 || !pm__profile_init(profile, 100)) abort();
  pm__unwind_each_object(note_largest, &object);
  uint64_t size = object->text_hi - object->text_lo, first = object->text_lo - object->bias;
  for (uint32_t w = 0; w < WINDOWS; w++) {
    random_state = 1;
    pm__profile_roll(profile, profile->start_ns + w * profile->window_ns);
    for (uint32_t t = 0, node = 0; t < THREADS; t++) {
      if (w == 0) pm__profile_add_thread(profile, (int32_t)t + 70, "worker");
      path[0] = profile->threads[t + 1].root;
      profile->threads[t + 1].sampled_ns = 1; /* or the view leaves it out */
      for (uint32_t depth = 0; node < nodes / THREADS * (t + 1); node++) {
        depth = next_depth(depth);
        /* Callees of one function lie far from each other, or they share a symbol. */
        uint64_t rva = first + size / (nodes / 20) * ((uint64_t)node * 7919 % (nodes / 20));
        path[depth] = pm__tree_child(
            &profile->tree, path[depth - 1],
            (struct pm_frame_key){.kind = PM_KEY_NATIVE, .id = object->id, .value = rva});
        if (random_below(WINDOWS) < 3) pm__tree_book(&profile->tree, path[depth], w, 10000000);
      }
    }
  }
}

static int swallow(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return 0;
}

struct step {
  const struct pm_export_format *format; /* NULL: make the view */
  const struct pm_view *view;
  const struct pm_profile *profile;
  size_t bytes, nodes;
};

/* The step and nothing else: callgrind looks for this name. */
void measured(struct step *step);
void __attribute__((noinline)) measured(struct step *step) {
  step->bytes = 0;
  if (step->format != NULL) {
    if (step->format->write(step->view, swallow, &step->bytes) != 0) abort();
    return;
  }
  pm__view_free(pm__profile_view(step->profile, NULL));
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void run(const char *name, uint32_t nodes, int repeats) {
  struct step step = {.format = pm__export_find(name)};
  struct pm_profile profile;
  struct synthetic *s = NULL;
  double shortest = 1e9;
  random_state = 1;
  if (step.format != NULL) {
    s = make_view(nodes);
    step.view = synthetic_finish(s);
    step.nodes = step.view->node_count;
  } else {
    make_profile(&profile, nodes);
    step.profile = &profile;
    step.nodes = profile.tree.count;
  }
  for (int i = 0; i < repeats; i++) {
    double start = now();
    measured(&step);
    double took = now() - start;
    if (took < shortest) shortest = took;
  }
  printf("%-13s %7zu nodes  %8.1f ms  %10zu bytes\n", name, step.nodes, shortest, step.bytes);
  if (s != NULL) synthetic_free(s);
  else pm__profile_free(&profile);
}

int main(int count, char **words) {
  if (count == 3) {
    run(words[1], (uint32_t)atoi(words[2]), 1);
    return 0;
  }
  for (size_t i = 0; i < PM_COUNT_OF(sizes); i++) run("view", sizes[i], REPEATS);
  for (size_t f = 0; f < PM_COUNT_OF(formats); f++) {
    for (size_t i = 0; i < PM_COUNT_OF(sizes); i++) run(formats[f], sizes[i], REPEATS);
  }
  return 0;
}
