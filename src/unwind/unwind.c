/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way in: keeps registry and snapshot under one lock, answers where a pc lies.
 *
 * Threads of the program ask too, in their callbacks, so the lock is not held while a
 * table is built. The builder has a lock of its own, always taken first.
 */
#include "unwind/unwind.h"

#include <pthread.h>

#include "pyrometer.h"
#include "signal/step.h"
#include "unwind/snapshot.h"

static pthread_mutex_t builder = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  struct pm_registry registry;
  struct pm_load_counts counts; /* at the last scan */
  struct pm_snapshot *newest, *retired;
  bool (*in_use)(const struct pm_tables *tables);
  uint32_t generation; /* never starts anew: a thread's pc cache may outlive a session */
  uint64_t build_ns, built_bytes; /* built_bytes: of the headers, which have 8 for a function */
  bool running;
  bool dirty; /* the registry is ahead of the newest snapshot */
} state;

/* Replaces the published snapshot. False: out of memory, the old one stays. */
static bool publish(void) {
  struct pm_snapshot *snapshot = pm__snapshot_make(&state.registry, state.generation);
  if (!snapshot) return false;
  (void)pm__tables_publish(snapshot->tables);
  if (state.newest) {
    state.newest->next = state.retired;
    state.retired = state.newest;
  }
  state.newest = snapshot;
  pm__snapshot_free_unused(&state.retired, state.in_use);
  return true;
}

static bool covers(const struct pm_loaded *loaded, const uintptr_t *wanted, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (wanted[i] >= loaded->image.text_lo && wanted[i] < loaded->image.text_hi) return true;
  return false;
}

static bool build_one(struct pm_loaded *loaded) {
  struct pm_compiled *compiled;
  if (!pm__registry_compile(loaded, &compiled)) return false;
  pthread_mutex_lock(&lock);
  pm__registry_settle(loaded, compiled);
  state.built_bytes += loaded->image.header_size;
  state.dirty = true;
  pthread_mutex_unlock(&lock);
  return true;
}

/* Builds what is pending; with `wanted`, only objects that cover one of its addresses. */
static void build(const uintptr_t *wanted, size_t count) {
  uint64_t start = pm__clock_monotonic();
  bool any = false;
  for (struct pm_loaded *loaded = state.registry.first; loaded; loaded = loaded->next) {
    if (!loaded->pending || (wanted && !covers(loaded, wanted, count))) continue;
    if (build_one(loaded)) any = true;
  }
  if (!any) return;
  pthread_mutex_lock(&lock);
  state.build_ns += pm__clock_monotonic() - start;
  pthread_mutex_unlock(&lock);
}

/* Scans when the loader's counts say that something changed, or when they say nothing. */
static int scan(void) {
  struct pm_load_counts now;
  struct pm_registry_change change;
  struct pm_image_list list;
  if (pm__image_counts(&now) && now.adds == state.counts.adds && now.subs == state.counts.subs)
    return 0;
  if (pm__image_scan(&list)) return -1;
  bool unloaded = list.counts.subs != state.counts.subs || !list.counts.adds;
  int error = pm__registry_update(&state.registry, &list, unloaded, &change);
  if (!error) state.counts = list.counts;
  pm__image_list_free(&list);
  if (change.gone) state.generation++;
  if (change.came || change.gone) state.dirty = true;
  return error;
}

static void begin(void) {
  pm__registry_begin(&state.registry);
  state.counts = (struct pm_load_counts){0, 0};
  state.build_ns = state.built_bytes = 0;
  state.dirty = true;
  state.generation++;
}

static void free_retired(void) {
  for (struct pm_snapshot *snapshot = state.retired, *next; snapshot; snapshot = next) {
    next = snapshot->next;
    pm__snapshot_free(snapshot);
  }
  state.retired = NULL;
}

static void stop(void) {
  (void)pm__tables_publish(NULL);
  pm__snapshot_free(state.newest);
  free_retired();
  state.newest = NULL;
  if (state.running) pm__registry_free(&state.registry);
  state.running = false;
}

static int begin_session(void) {
  pthread_mutex_lock(&lock);
  if (!state.running) begin();
  state.running = true;
  int error = scan();
  pthread_mutex_unlock(&lock);
  return error;
}

static int end_start(int error) {
  pthread_mutex_lock(&lock);
  if (!error && state.dirty && !publish()) error = -1;
  if (!error) state.dirty = false;
  free_retired(); /* no handler runs between sessions */
  if (!error) pm__registry_forget_gone(&state.registry); /* nor does a profile name them */
  if (error) stop();
  pthread_mutex_unlock(&lock);
  return error ? PYROMETER_E_MEMORY : PYROMETER_OK;
}

int pm__unwind_start(const uintptr_t *first, size_t first_count) {
  uintptr_t own = (uintptr_t)&pm__unwind_here; /* pm__unwind_here walks through this object */
  pthread_mutex_lock(&builder);
  int error = begin_session();
  build(&own, 1);
  if (first_count) build(first, first_count);
  error = end_start(error);
  pthread_mutex_unlock(&builder);
  return error;
}

static bool publish_changes(void) {
  pthread_mutex_lock(&lock);
  bool published = state.dirty && publish();
  if (published) state.dirty = false;
  else pm__snapshot_free_unused(&state.retired, state.in_use);
  pthread_mutex_unlock(&lock);
  return published;
}

bool pm__unwind_refresh(void) {
  bool published = false;
  pthread_mutex_lock(&builder);
  if (state.running) {
    pthread_mutex_lock(&lock);
    (void)scan(); /* what was taken up before memory ran out holds */
    pthread_mutex_unlock(&lock);
    build(NULL, 0);
    published = publish_changes();
  }
  pthread_mutex_unlock(&builder);
  return published;
}

static struct pm_location locate(uintptr_t pc) {
  struct pm_location location = {.rva = pc, .function_rva = pc};
  const struct pm_span *span = state.newest ? pm__tables_span(state.newest->tables, pc) : NULL;
  if (!span) return location;
  const struct pm_loaded *loaded = span->object;
  location.object = &loaded->object;
  location.rva = location.function_rva = pc - loaded->object.bias;
  const struct pm_function *function = pm__table_function(span, pc);
  if (!function) return location;
  location.function_rva = span->lo + function->start - loaded->object.bias;
  location.has_function = true;
  return location;
}

struct pm_location pm__unwind_locate(uintptr_t pc) {
  pthread_mutex_lock(&lock);
  struct pm_location location = locate(pc);
  pthread_mutex_unlock(&lock);
  return location;
}

void pm__unwind_each_object(void (*visit)(void *context, const struct pm_object *object),
                            void *context) {
  pthread_mutex_lock(&lock);
  for (struct pm_loaded *loaded = state.registry.first; loaded; loaded = loaded->next)
    visit(context, &loaded->object);
  pthread_mutex_unlock(&lock);
}

/*
 * The lock, not a hazard, keeps the snapshot. The stack's bounds are not known
 * here, so every page is asked for. One step leads out of this function; there
 * the walk begins as if it had been interrupted at the return address, which
 * differs only for a call that never returns.
 */
void pm__unwind_here(struct pm_walk *walk) {
  struct pm_stack stack = {.hi = UINTPTR_MAX & ~(uintptr_t)7, .probe = true};
  struct pm_registers registers;
  struct pm_cursor cursor;
  uintptr_t cfa;
  pthread_mutex_lock(&lock);
  const struct pm_tables *tables = state.newest ? state.newest->tables : NULL;
  pm__cpu_capture(&registers);
  pm__step_begin(&cursor, tables, NULL, registers, stack);
  if (pm__step_next(&cursor, &cfa) == PM_STEP_CALLER) {
    pm__walk_native(tables, NULL, cursor.registers, stack, walk);
  } else {
    walk->count = walk->split = walk->skipped = 0;
    walk->flags = PM_WALK_NO_RULE;
  }
  pthread_mutex_unlock(&lock);
}

struct pm_unwind_statistics pm__unwind_statistics(void) {
  struct pm_unwind_statistics sum = {0};
  pthread_mutex_lock(&lock);
  for (struct pm_loaded *loaded = state.registry.first; loaded; loaded = loaded->next) {
    if (!loaded->alive) continue;
    sum.objects++;
    sum.text_bytes += loaded->image.text_hi - loaded->image.text_lo;
    if (!loaded->compiled) continue;
    sum.rows += loaded->compiled->table.rows;
    sum.bytes += loaded->compiled->bytes;
    sum.rejected += loaded->compiled->rejected;
  }
  sum.build_ns = state.build_ns;
  pthread_mutex_unlock(&lock);
  return sum;
}

uint64_t pm__unwind_left_ns(void) {
  uint64_t left = 0;
  pthread_mutex_lock(&lock);
  for (struct pm_loaded *loaded = state.registry.first; loaded; loaded = loaded->next)
    if (loaded->pending) left += loaded->image.header_size;
  if (state.built_bytes) left = left * state.build_ns / state.built_bytes;
  pthread_mutex_unlock(&lock);
  return left;
}

void pm__unwind_set_in_use(bool (*in_use)(const struct pm_tables *tables)) {
  pthread_mutex_lock(&lock);
  state.in_use = in_use;
  pthread_mutex_unlock(&lock);
}

void pm__unwind_stop(void) {
  pthread_mutex_lock(&builder);
  pthread_mutex_lock(&lock);
  stop();
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&builder);
}

void pm__unwind_forked(void) {
  pthread_mutex_init(&builder, NULL);
  pthread_mutex_init(&lock, NULL);
  (void)pm__tables_publish(NULL);
  state.newest = state.retired = NULL;
  state.running = false;
}
