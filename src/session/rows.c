/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. */
#include "session/rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler/sampler.h"
#include "session/queue.h"

enum { PATIENCE_MS = 100 }; /* with a reader that is slow, per row */

static struct {
  const struct pm_reporter_options *options;
  uint64_t dropped;
  char *bytes; /* made, not yet written; each row's size stands before it */
  size_t used, room;
  bool told;               /* of a level that keeps the rows back */
  _Atomic bool unwelcome; /* the logger's level is above the rows' */
} rows;

void pm__rows_configure(const struct pm_reporter_options *options) {
  rows.options = options;
  rows.dropped = 0;
  rows.told = false;
  atomic_store(&rows.unwelcome, false);
}

uint64_t pm__rows_dropped(void) { return rows.dropped; }

static bool has_room(size_t need) {
  if (need <= rows.room) return true;
  char *bigger = realloc(rows.bytes, need * 2);
  if (bigger == NULL) return false;
  rows.bytes = bigger;
  rows.room = need * 2;
  return true;
}

static bool keep_bytes(const struct pm_report_row *row) {
  if (!has_room(rows.used + sizeof row->size + row->size)) return false;
  memcpy(rows.bytes + rows.used, &row->size, sizeof row->size);
  memcpy(rows.bytes + rows.used + sizeof row->size, row->text, row->size);
  rows.used += sizeof row->size + row->size;
  return true;
}

static bool queue_row(const struct pm_report_row *row) {
  uint64_t patience = rows.options->every_ms * (uint64_t)1000000;
  return row->fields != NULL &&
         pm__queue_put(row->text, row->size, row->fields, pm__clock_monotonic() + patience);
}

void pm__rows_keep(void *context, const struct pm_report_row *row) {
  (void)context;
  bool kept = rows.options->logging ? queue_row(row) : keep_bytes(row);
  if (!kept) rows.dropped++;
}

static bool write_row(const char *row, size_t size) {
  const struct pm_reporter_options *options = rows.options;
  if (options->sink != NULL) return options->sink(options->context, row, size) == 0;
  return pm__report_write(options->fd, row, size, PATIENCE_MS);
}

/* A reader that does not take one row will not take the next ones either: no more waiting for it. */
static void write_bytes(void) {
  bool taken = true;
  if (rows.used == 0) return;
  if (rows.options->sink == NULL) pm__report_take_turn(rows.options->fd, PATIENCE_MS);
  for (size_t at = 0; at < rows.used;) {
    size_t size;
    memcpy(&size, rows.bytes + at, sizeof size);
    taken = taken && write_row(rows.bytes + at + sizeof size, size);
    if (!taken) rows.dropped++;
    at += sizeof size + size;
  }
  rows.used = 0;
  pm__report_give_turn();
}

static bool write_marked(const struct pm_queue_row *row) {
  char text[PM_REPORT_ROW_MAX];
  size_t size =
      pm__report_mark(row->text, row->size, row->mark != NULL ? row->mark : "waited", text);
  return write_row(text, size);
}

/* Writes the rows that logging returned or has not taken by `now`. */
static void take_back(uint64_t now) {
  struct pm_queue_row *row;
  bool taken = true;
  while ((row = pm__queue_take_back(now)) != NULL) {
    taken = taken && write_marked(row);
    if (!taken) rows.dropped++;
    pm__queue_free_row(row);
  }
}

/* Logging drops what its level does not let pass, and so do we; but not without a word. */
static void tell_of_level(void) {
  static const char message[] =
      "pyrometer: the logger \"pyrometer\" is disabled or its level is above INFO: it drops the "
      "reports; set it to INFO\n";
  if (rows.told || !atomic_load(&rows.unwelcome)) return;
  rows.told = true;
  write_row(message, sizeof message - 1);
}

static void remind(void *context, struct pm_sampled *sampled) {
  (void)context;
  struct pm_shadow *shadow = sampled->thread.shadow;
  bool main = atomic_load(&sampled->thread.tid) == getpid();
  if (main && shadow != NULL) atomic_fetch_or(&shadow->attention, PM_ATTENTION_CALLS);
}

static void hand_over(void) {
  take_back(pm__clock_monotonic());
  tell_of_level();
  if (!pm__queue_has_rows()) return;
  if (pm__python_log_ask()) {
    pm__sampler_each(remind, NULL);
  } else {
    take_back(UINT64_MAX);
  }
}

void pm__rows_write(void) {
  if (rows.options->logging) {
    hand_over();
  } else {
    write_bytes();
  }
}

void pm__rows_end(void) {
  if (rows.options->logging) take_back(UINT64_MAX);
}

bool pm__rows_next(struct pm_log_row *out) {
  struct pm_queue_row *row = pm__queue_take();
  if (row == NULL) return false;
  /* The line break is the handler's. */
  *out = (struct pm_log_row){
      .text = row->text, .size = row->size - 1, .fields = row->fields, .owner = row};
  return true;
}

void pm__rows_done(void *owner, const char *outcome) {
  struct pm_queue_row *row = owner;
  bool level = strcmp(outcome, "level") == 0;
  if (level) atomic_store(&rows.unwelcome, true);
  if (level || outcome[0] == '\0') {
    pm__queue_free_row(row);
  } else {
    pm__queue_return(row, strcmp(outcome, "unhandled") == 0 ? "unhandled" : "failed");
  }
}

void pm__rows_forked(void) {
  pm__report_give_turn();
  rows.used = 0;
  pm__queue_forked();
}
