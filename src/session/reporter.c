/* SPDX-License-Identifier: Apache-2.0 */
/* See reporter.h. */
#include "session/reporter.h"

#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "session/books.h"
#include "symbol/symbol.h"

enum { PATIENCE_MS = 100 }; /* with a reader that is slow, per row */

static struct {
  struct pm_reporter_options options;
  struct pm_profile profile; /* of the interval */
  struct pm_symbolizer *symbolizer;
  uint64_t next;
  uint64_t collector_ns; /* CPU of the collector when the interval began */
  uint64_t dropped;
  uint32_t window;
  bool open;
  char *rows; /* made, not yet written */
  size_t used, room;
} reporter;

void pm__reporter_configure(const struct pm_reporter_options *options) {
  reporter.options = *options;
  reporter.window = 0;
  reporter.dropped = 0;
  reporter.collector_ns = 0;
}

/* Threads are renamed, and a forked child's main thread gets its name late. */
static void ask_for_name(void *context, struct pm_sampled *sampled) {
  (void)context;
  struct pm_shadow *shadow = sampled->thread.shadow;
  if (shadow != NULL) atomic_fetch_or(&shadow->attention, PM_ATTENTION_NAME);
}

static void open_interval(void) {
  if (!pm__profile_init(&reporter.profile, reporter.options.rate_hz)) return;
  reporter.profile.symbolizer = reporter.symbolizer;
  pm__profile_begin_calls(&reporter.profile);
  pm__books_open(PM_BOOK_REPORT, &reporter.profile);
  pm__sampler_each(ask_for_name, NULL);
  reporter.open = true;
  reporter.window++;
}

static void close_interval(void) {
  if (!reporter.open) return;
  pm__books_close(PM_BOOK_REPORT);
  pm__profile_free(&reporter.profile);
  reporter.open = false;
}

void pm__reporter_begin(uint64_t now) {
  if (reporter.options.every_ms == 0) return;
  if (reporter.symbolizer == NULL) reporter.symbolizer = pm__symbolizer_new();
  reporter.next = now + reporter.options.every_ms * (uint64_t)1000000;
  open_interval();
}

/* Keeps a row for pm__reporter_write; its size stands before it. */
static void keep_row(void *context, const char *row, size_t size) {
  (void)context;
  size_t need = reporter.used + sizeof size + size;
  if (need > reporter.room) {
    size_t room = need * 2;
    char *bigger = realloc(reporter.rows, room);
    if (bigger == NULL) {
      reporter.dropped++;
      return;
    }
    reporter.rows = bigger;
    reporter.room = room;
  }
  memcpy(reporter.rows + reporter.used, &size, sizeof size);
  memcpy(reporter.rows + reporter.used + sizeof size, row, size);
  reporter.used = need;
}

static bool write_row(const char *row, size_t size) {
  const struct pm_reporter_options *options = &reporter.options;
  if (options->sink != NULL) return options->sink(options->context, row, size) == 0;
  return pm__report_write(options->fd, row, size, PATIENCE_MS);
}

/* A reader that does not take one row will not take the next ones either: no more waiting for it. */
void pm__reporter_write(void) {
  bool taken = true;
  if (reporter.used == 0) return;
  if (reporter.options.sink == NULL) pm__report_take_turn(reporter.options.fd, PATIENCE_MS);
  for (size_t at = 0; at < reporter.used;) {
    size_t size;
    memcpy(&size, reporter.rows + at, sizeof size);
    taken = taken && write_row(reporter.rows + at + sizeof size, size);
    if (!taken) reporter.dropped++;
    at += sizeof size + size;
  }
  reporter.used = 0;
  pm__report_give_turn();
}

void pm__reporter_forked(void) {
  pm__report_give_turn();
  reporter.open = false;
  reporter.used = 0;
}

/* The interval's accounts: threads' clocks have been read by the scan that came before. */
static void settle(uint64_t now, uint64_t collector_ns) {
  struct pm_profile *profile = &reporter.profile;
  pm__books_settle(PM_BOOK_REPORT, 0);
  pm__profile_roll(profile, now);
  profile->end_ns = now;
  profile->end_ms = profile->start_ms + (now - profile->start_ns) / 1000000u;
  profile->collector_ns = collector_ns - reporter.collector_ns;
  reporter.collector_ns = collector_ns;
  pm__profile_settle_rest(profile);
}

static void report(void) {
  const struct pm_profile *profile = &reporter.profile;
  struct pm_view *view = pm__profile_view(profile, NULL);
  if (view == NULL) return;
  const struct pm_report rows = {
      .view = view,
      .window = reporter.window,
      .top = reporter.options.top,
      .attributed =
          profile->samples == 0 ? 0.0 : (double)profile->attributed / (double)profile->samples,
      .dropped = reporter.dropped,
  };
  if (reporter.options.json) {
    pm__report_json(&rows, keep_row, NULL);
  } else {
    pm__report_text(&rows, keep_row, NULL);
  }
  pm__view_free(view);
}

/* The next report is due a whole number of intervals after the first, however long this one took. */
static void schedule(uint64_t now) {
  uint64_t every = reporter.options.every_ms * (uint64_t)1000000;
  while (reporter.next <= now) reporter.next += every;
}

void pm__reporter_round(uint64_t now, uint64_t collector_ns) {
  if (reporter.options.every_ms == 0 || now < reporter.next) return;
  if (reporter.open) {
    pm__sampler_scan();
    settle(now, collector_ns);
    report();
    close_interval();
  }
  schedule(now);
  open_interval();
}

void pm__reporter_end(void) {
  close_interval();
  pm__symbolizer_free(reporter.symbolizer);
  reporter.symbolizer = NULL;
}
