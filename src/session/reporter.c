/* SPDX-License-Identifier: Apache-2.0 */
/* See reporter.h. */
#include "session/reporter.h"

#include "report/report.h"
#include "session/books.h"
#include "session/collector.h"
#include "session/folder.h"
#include "session/rows.h"
#include "symbol/symbol.h"

static struct {
  struct pm_reporter_options options;
  struct pm_profile profile; /* of the interval */
  struct pm_symbolizer *symbolizer;
  uint64_t next;
  uint64_t collector_ns; /* CPU of the collector when the interval began */
  uint32_t window;
  bool open;
  struct pm_view *view; /* of `window`, not yet in the folder */
  uint32_t view_window;
} reporter;

void pm__reporter_configure(const struct pm_reporter_options *options) {
  reporter.options = *options;
  reporter.window = 0;
  reporter.collector_ns = 0;
  pm__rows_configure(&reporter.options);
  pm__folder_configure(options->every_ms == 0 ? NULL : options->output);
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
  pm__profile_begin_events(&reporter.profile, pm__collector_events());
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

/* The folder comes last: its file may take a while. */
void pm__reporter_write(void) {
  pm__rows_write();
  if (reporter.view != NULL) pm__folder_write(reporter.view, reporter.view_window);
  pm__view_free(reporter.view);
  reporter.view = NULL;
}

void pm__reporter_forked(void) {
  reporter.open = false;
  reporter.view = NULL; /* unfreed, like all that was the parent's */
  pm__rows_forked();
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
  pm__profile_note_events(profile, pm__collector_events());
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
      .dropped = pm__rows_dropped(),
      .fields = reporter.options.logging,
  };
  if (reporter.options.json) {
    pm__report_json(&rows, pm__rows_keep, NULL);
  } else {
    pm__report_text(&rows, pm__rows_keep, NULL);
  }
  if (pm__folder_is_set()) {
    reporter.view = view;
    reporter.view_window = reporter.window;
  } else {
    pm__view_free(view);
  }
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
  pm__rows_end();
  reporter.next = UINT64_MAX; /* no interval is opened by what is still collected */
  pm__symbolizer_free(reporter.symbolizer);
  reporter.symbolizer = NULL;
}
