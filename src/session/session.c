/* SPDX-License-Identifier: Apache-2.0 */
/* The public interface: one session a process, idle, running or stopped. */
#include "session/session.h"

#include <pthread.h>
#include <pyrometer.h>
#include <string.h>

#include "base/loader.h"
#include "export/export.h"
#include "profile/donors.h"
#include "python/arrival.h"
#include "python/python.h"
#include "sampler/sampler.h"
#include "session/collector.h"
#include "session/fork.h"
#include "session/governor.h"
#include "session/reporter.h"
#include "session/rows.h"
#include "unwind/unwind.h"

/*
 * How long a start waits for the first sample to be possible. Most processes are
 * ready sooner, so nothing of them goes unseen; tables for large ones are built
 * while they run, and for those a start does not wait at all.
 */
enum {
  START_SOON_MS = 5,  /* of work that is left: a start waits for no more */
  START_WAIT_MS = 50, /* by the clock: where others take the CPU that work lasts longer */
};

enum session_state { IDLE, RUNNING, STOPPED };

static struct {
  _Atomic bool put_off; /* a delayed session runs that has not reached Python */
  pthread_mutex_t lock;   /* the interface lock */
  _Atomic int32_t holder; /* tid of who has it, 0: nobody */
  enum session_state state;
  struct pm_profile profile;
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * Another thread may hold the lock and wait for the GIL: so it is never waited for with
 * the GIL held. False: the caller holds it, for a sink of its own or a signal handler of
 * its Python code has called us from inside.
 */
static bool lock_session(void) {
  if (atomic_load(&session.holder) == pm__thread_id()) return false;
  if (pthread_mutex_trylock(&session.lock) != 0) {
    void *gil = pm__python_release_gil();
    pthread_mutex_lock(&session.lock);
    pm__python_take_gil(gil);
  }
  atomic_store(&session.holder, pm__thread_id());
  return true;
}

static void unlock_session(void) {
  atomic_store(&session.holder, 0);
  pthread_mutex_unlock(&session.lock);
}

struct settings {
  uint32_t rate_hz, flags, max_threads, delay_ms, budget;
  struct pm_reporter_options report;
};

enum { FLAGS = PYROMETER_NO_PYTHON | PYROMETER_REPORT_JSON | PYROMETER_REPORT_LOGGING };
enum { BUDGET_MAX = 10000 };
enum { REPORT_TOP_DEFAULT = 20, EVERY_MS_MIN = 100, EVERY_MS_MAX = 86400000 };

static bool read_report(const struct pyrometer_options *given, struct settings *settings) {
  settings->report = (struct pm_reporter_options){
      .every_ms = given->report_every_ms,
      .top = given->report_top == 0 ? REPORT_TOP_DEFAULT : given->report_top,
      .fd = given->report_fd == 0 ? 2 : given->report_fd,
      .json = (given->flags & PYROMETER_REPORT_JSON) != 0,
      .logging = (given->flags & PYROMETER_REPORT_LOGGING) != 0,
      .output = given->report_output,
      .sink = given->report_sink,
      .context = given->report_context,
      .rate_hz = settings->rate_hz,
  };
  bool off = settings->report.every_ms == 0;
  return off || (settings->report.every_ms >= EVERY_MS_MIN &&
                 settings->report.every_ms <= EVERY_MS_MAX && settings->report.top <= 1000);
}

/* Fields beyond the caller's size keep their defaults. */
static int read_options(const struct pyrometer_options *options, struct settings *settings) {
  struct pyrometer_options given = {0};
  if (options != NULL) {
    if (options->size < sizeof options->size || options->size > sizeof given) {
      return PYROMETER_E_OPTION;
    }
    memcpy(&given, options, options->size);
  }
  settings->rate_hz = given.rate_hz == 0 ? PM_RATE_DEFAULT : given.rate_hz;
  settings->max_threads = given.max_threads == 0 ? PM_PYTHON_THREADS_DEFAULT : given.max_threads;
  settings->flags = given.flags;
  settings->budget = given.budget;
  bool allowed = settings->rate_hz <= PM_RATE_MAX && settings->budget <= BUDGET_MAX &&
                 settings->max_threads <= 65536 && (settings->flags & ~(uint32_t)FLAGS) == 0 &&
                 read_report(&given, settings);
  return allowed ? PYROMETER_OK : PYROMETER_E_OPTION;
}

/*
 * The child has no timer and no collector; what the parent had under way is left
 * as it is, unread and unfreed: another thread may have been in the middle of it.
 * So none of our locks is taken before the fork, and none could be: from 3.13 on CPython
 * forks with all threads stopped, one of which may hold it. The loader's is (loader.h).
 */
static void after_fork_in_child(void) {
  pm__loader_forked();
  pm__python_forked();
  pm__unwind_forked();
  pm__sampler_forked();
  pm__collector_forked();
  pm__governor_forked();
  pm__donors_forked();
  pm__reporter_forked();
  pthread_mutex_init(&session.lock, NULL);
  atomic_store(&session.holder, 0);
  atomic_store(&session.put_off, false);
  session.state = IDLE;
}

static void before_fork(void) {
  if (atomic_load(&session.put_off) || pm__python_is_paused()) pm__arrival_before_fork();
  pm__loader_before_fork();
}

static void watch_forks(void) {
  static const struct pm_fork_hooks around = {
      .before = before_fork, .in_parent = pm__loader_after_fork, .in_child = after_fork_in_child};
  pm__fork_watch(&around);
}

static bool function_at(uintptr_t pc, uintptr_t *start) {
  struct pm_location at = pm__unwind_locate(pc);
  if (at.object == NULL || !at.has_function) return false;
  *start = (uintptr_t)at.function_rva + at.object->bias;
  return true;
}

/* Tables for the interpreter and for this library come first: calibration walks through both. */
static int start_unwinder(void) {
  uintptr_t first[] = {(uintptr_t)&pyrometer_start, pm__python_address()};
  pm__unwind_set_in_use(pm__sampler_tables_in_use);
  return pm__unwind_start(first, first[1] == 0 ? 1 : 2);
}

/* Unwind tables stay: to build them anew is most of what a start costs. */
static void drop_profile(void) {
  pm__donors_end();
  pm__sampler_reset();
  pm__profile_free(&session.profile);
  session.state = IDLE;
}

static void drop_all(void) {
  pm__python_reset();
  drop_profile();
  pm__unwind_stop();
}

static const struct pm_python_hooks hooks = {
    .shadow_of_caller = pm__sampler_shadow,
    .shadow_of_thread = pm__sampler_shadow_of,
    .walk_here = pm__unwind_here,
    .function_at = function_at,
    .name_thread = pm__sampler_name,
    .in_forked_child = pm__arm_in_child,
    .next_row = pm__rows_next,
    .row_done = pm__rows_done,
};

/* With the GIL, after the start. False: the caller has the session's lock itself. */
static bool let_in(bool guest) {
  if (!lock_session()) return false;
  if (session.state == RUNNING && pm__arrival_is_wanted()) pm__python_start(&hooks, guest);
  atomic_store(&session.put_off, false);
  unlock_session();
  return true;
}

/* What there is to do for Python now, and whether it is to be reached later. */
static pm_arrival start_python(const struct settings *settings) {
  if (settings->flags & PYROMETER_NO_PYTHON) {
    pm__python_reset();
    return NULL;
  }
  if (settings->delay_ms == 0) {
    return pm__python_start(&hooks, false) == PM_PYTHON_ABSENT ? let_in : NULL;
  }
  pm__arrival_glance();
  pm__python_put_off(&hooks);
  atomic_store(&session.put_off, true);
  return let_in;
}

/* Without tables, frame pointers and guesses must do. */
static void prepare(void) { (void)start_unwinder(); }

static int start_now(const struct settings *settings) {
  int error = start_unwinder();
  if (error != PYROMETER_OK) return error;
  pm__sampler_register();
  const struct pm_collector_begin begin = {.let_in = start_python(settings)};
  return pm__collector_start(&session.profile, &begin);
}

static int start_later(const struct settings *settings) {
  const struct pm_collector_begin begin = {
      .delay_ms = settings->delay_ms, .prepare = prepare, .let_in = start_python(settings)};
  return pm__collector_start(&session.profile, &begin);
}

static void wait_if_soon_armed(void) {
  bool soon = pm__unwind_left_ns() <= START_SOON_MS * (uint64_t)1000000;
  if (soon) pm__collector_wait_armed(START_WAIT_MS);
}

static int start_session(const struct settings *settings) {
  const struct pm_sampler_options options = {.rate_hz = settings->rate_hz,
                                             .python_threads = settings->max_threads};
  if (!pm__profile_init(&session.profile, settings->rate_hz)) return PYROMETER_E_MEMORY;
  pm__reporter_configure(&settings->report);
  pm__governor_reset();
  bool donors = settings->budget > 0 && pm__donors_begin();
  int error = pm__sampler_start(&options);
  if (error == PYROMETER_OK) {
    error = settings->delay_ms == 0 ? start_now(settings) : start_later(settings);
  }
  if (error != PYROMETER_OK) {
    drop_all();
    return error;
  }
  session.state = RUNNING;
  pm__governor_begin(donors ? settings->budget : 0, settings->rate_hz);
  if (settings->delay_ms == 0) wait_if_soon_armed();
  return PYROMETER_OK;
}

int pm__session_start(const struct pyrometer_options *options, uint32_t delay_ms) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct settings settings;
  int error = read_options(options, &settings);
  if (error != PYROMETER_OK) return error;
  settings.delay_ms = delay_ms;
  pthread_once(&once, watch_forks);
  if (!lock_session()) return PYROMETER_E_ALREADY_RUNNING;
  if (session.state == RUNNING) {
    error = PYROMETER_E_ALREADY_RUNNING;
  } else {
    if (session.state == STOPPED) drop_profile();
    error = start_session(&settings);
  }
  unlock_session();
  return error;
}

int pyrometer_start(const struct pyrometer_options *options) {
  return pm__session_start(options, 0);
}

int pyrometer_stop(void) {
  if (!lock_session()) return PYROMETER_E_NOT_RUNNING;
  int error = session.state == RUNNING ? PYROMETER_OK : PYROMETER_E_NOT_RUNNING;
  if (error == PYROMETER_OK) {
    /* The wait for the GIL comes last: what is burnt meanwhile is not the session's. */
    pm__sampler_disarm();
    pm__governor_end();
    pm__collector_stop();
    pm__donors_end();
    pm__python_stop();
    atomic_store(&session.put_off, false);
    pm__collector_rename();
    session.state = STOPPED;
  }
  unlock_session();
  return error;
}

int pyrometer_reset(void) {
  if (!lock_session()) return PYROMETER_E_ALREADY_RUNNING;
  int error = session.state == RUNNING ? PYROMETER_E_ALREADY_RUNNING : PYROMETER_OK;
  if (session.state == STOPPED) drop_all();
  unlock_session();
  return error;
}

/* The view of today; the interface lock is held. */
static struct pm_view *make_view(void) {
  if (session.state == RUNNING) pm__python_refresh_names();
  pm__collector_lock();
  json_t *diagnostics = pm__diagnostics_make(&session.profile);
  struct pm_view *view =
      diagnostics == NULL ? NULL : pm__profile_view(&session.profile, diagnostics);
  pm__collector_unlock();
  return view;
}

struct output {
  const struct pm_export_format *format;
  const char *path;    /* NULL: into the sink */
  pyrometer_sink sink;
  void *context;
};

static int write_output(const struct pm_view *view, const struct output *output) {
  if (output->path != NULL) return pm__export_file(view, output->format, output->path);
  return output->format->write(view, output->sink, output->context);
}

static int export_view(const struct output *output) {
  if (output->format == NULL) return PYROMETER_E_FORMAT;
  if (!lock_session()) return PYROMETER_E_NO_PROFILE;
  int error = PYROMETER_E_NO_PROFILE;
  if (session.state != IDLE) {
    struct pm_view *view = make_view();
    error = view == NULL ? PYROMETER_E_MEMORY : write_output(view, output);
    pm__view_free(view);
  }
  unlock_session();
  return error;
}

int pyrometer_export(const char *path) {
  return export_view(&(struct output){.format = pm__export_find(path), .path = path});
}

int pyrometer_export_to(const char *format, pyrometer_sink sink, void *context) {
  return export_view(
      &(struct output){.format = pm__export_find(format), .sink = sink, .context = context});
}

struct dump {
  pyrometer_sink sink;
  void *context;
};

static int dump_bytes(const char *bytes, size_t size, void *data) {
  const struct dump *dump = data;
  return dump->sink(dump->context, bytes, size);
}

static int take_diagnostics(json_t **diagnostics) {
  if (!lock_session()) return PYROMETER_E_NO_PROFILE;
  int error = session.state == IDLE ? PYROMETER_E_NO_PROFILE : PYROMETER_OK;
  if (error == PYROMETER_OK) {
    if (session.state == RUNNING) pm__python_check();
    pm__collector_lock();
    *diagnostics = pm__diagnostics_make(&session.profile);
    pm__collector_unlock();
    if (*diagnostics == NULL) error = PYROMETER_E_MEMORY;
  }
  unlock_session();
  return error;
}

int pyrometer_snapshot(pyrometer_sink sink, void *context) {
  json_t *diagnostics = NULL;
  int error = take_diagnostics(&diagnostics);
  if (error != PYROMETER_OK) return error;
  struct dump dump = {.sink = sink, .context = context};
  int refused = json_dump_callback(diagnostics, dump_bytes, &dump, 0);
  json_decref(diagnostics);
  return refused ? PYROMETER_E_CALLBACK : PYROMETER_OK;
}

int pyrometer_thread_register(void) {
  if (!lock_session()) return PYROMETER_E_NOT_RUNNING;
  int error = session.state == RUNNING ? PYROMETER_OK : PYROMETER_E_NOT_RUNNING;
  if (error == PYROMETER_OK && !pm__sampler_register()) error = PYROMETER_E_MEMORY;
  unlock_session();
  return error;
}
