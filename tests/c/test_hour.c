/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an hour of a service is in memory: 100 functions that call each other on 4 threads,
 * a busy core at 100 Hz, 60 windows of a minute, a report each minute and an export at the
 * end. The frames are addresses in libc, so that there are names to look up. What is kept is
 * bounded here; an export takes more while it runs, printed as "at the most".
 */
#include <malloc.h>
#include <stdlib.h>

#include "check.h"
#include "export/export.h"
#include "profile/profile.h"
#include "unwind/unwind.h"

enum { FUNCTIONS = 100, DEPTH = 12, THREADS = 4, MINUTES = 60, RATE = 100 };

#ifdef __SANITIZE_ADDRESS__
enum { KEEPS_FREED = 1 }; /* so the process's size says nothing */
#else
enum { KEEPS_FREED = 0 };
#endif

static const uint64_t period_ns = 10000000;
static const long most_kb = 20 * 1000 * 1000 / 1024;

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
  random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % bound;
}

static long status_kb(const char *field) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  long kb = -1;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, field, strlen(field)) == 0) kb = strtol(line + strlen(field) + 1, NULL, 10);
  }
  if (file != NULL) fclose(file);
  return kb;
}

static void find_libc(void *context, const struct pm_object *object) {
  const struct pm_object **found = context;
  uintptr_t inside = (uintptr_t)&fopen;
  if (inside >= object->text_lo && inside < object->text_hi) *found = object;
}

static struct pm_frame_key function(const struct pm_object *object, uint32_t index) {
  uint64_t step = (object->text_hi - object->text_lo) / FUNCTIONS;
  uint64_t rva = object->text_lo - object->bias + step * index;
  return (struct pm_frame_key){.kind = PM_KEY_NATIVE, .id = object->id, .value = rva};
}

/* A request: from one of ten entries down through callees, which are always the same three. */
static void sample(const struct pm_object *object, struct pm_merged *merged) {
  uint32_t depth = 2 + random_below(DEPTH - 1), current = random_below(10);
  merged->stack.count = 0;
  for (uint32_t i = 0; i < depth; i++) {
    merged->stack.frames[merged->stack.count++] = function(object, current);
    uint32_t share = random_below(100); /* the first takes most of the time */
    uint32_t callee = share < 90 ? 0 : share < 98 ? 1 : 2;
    current = (current * 31 + callee * 17 + 7) % FUNCTIONS;
  }
}

static int swallow(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return 0;
}

static size_t export(const struct pm_profile *profile, const char *format) {
  size_t bytes = 0;
  struct pm_view *view = pm__profile_view(profile, json_object());
  CHECK(view != NULL);
  CHECK_EQ_INT(pm__export_find(format)->write(view, swallow, &bytes), 0);
  pm__view_free(view);
  return bytes;
}

static void open_profile(struct pm_profile *profile) {
  CHECK(pm__profile_init(profile, RATE));
  for (int32_t t = 1; t <= THREADS; t++) pm__profile_add_thread(profile, 70 + t, "worker");
}

static void run_minute(struct pm_profile *session, const struct pm_object *object) {
  struct pm_profile interval;
  struct pm_merged merged = {.flags = PM_WALK_ROOT};
  open_profile(&interval);
  for (uint32_t i = 0; i < 60 * RATE; i++) {
    uint32_t thread = 1 + random_below(THREADS);
    sample(object, &merged);
    pm__profile_book(session, thread, &merged, period_ns);
    pm__profile_book(&interval, thread, &merged, period_ns);
  }
  export(&interval, "sparkprofile");
  pm__profile_free(&interval);
}

int main(void) {
  const struct pm_object *object = NULL;
  struct pm_profile session;
  CHECK_EQ_INT(pm__unwind_start(NULL, 0), 0);
  pm__unwind_each_object(find_libc, &object);
  long before = status_kb("VmRSS");
  open_profile(&session);
  for (uint64_t minute = 0; minute < MINUTES; minute++) {
    pm__profile_roll(&session, session.start_ns + minute * session.window_ns);
    run_minute(&session, object);
  }
  CHECK_EQ_INT(session.window_count, MINUTES);
  CHECK_EQ_INT(session.sampled_ns, 60u * MINUTES * RATE * period_ns);
  CHECK_EQ_INT(session.dropped, 0);
  malloc_trim(0);
  long kept = status_kb("VmRSS") - before;
  size_t bytes = export(&session, "sparkprofile");
  long peak = status_kb("VmHWM") - before;
  printf("an hour: %u nodes, %u times, a tree of %.1f MB; %ld kB more than at its start, "
         "%ld kB at the most (with the export of %.1f MB)\n",
         session.tree.count, pm__tree_times(&session.tree),
         (double)pm__tree_bytes(&session.tree) / 1e6, kept, peak, (double)bytes / 1e6);
  CHECK(before > 0 && kept >= 0 && (kept <= most_kb || KEEPS_FREED));
  CHECK(pm__tree_bytes(&session.tree) <= (size_t)most_kb * 1024);
  pm__profile_free(&session);
  pm__unwind_stop();
  return check_report();
}
