/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report: one interval's profile as rows for the service's own log.
 * Called by: session (collector thread). Locks: none. Needs no GIL and no Python
 * thread, so it works while one of those sits on the GIL for ever.
 */
#ifndef PM_REPORT_REPORT_H
#define PM_REPORT_REPORT_H

#include "base/base.h"
#include "profile/view.h"

enum { PM_REPORT_ROW_MAX = 4096 }; /* bytes with the line break: what a pipe takes in one piece */

struct pm_report_row {
  const char *text; /* ends with a line break and holds no other; no NUL is needed behind it */
  size_t size;
  json_t *fields; /* what it says as an object, the sink's to borrow; NULL: not wanted */
};

typedef void (*pm_report_sink)(void *context, const struct pm_report_row *row);

struct pm_report {
  const struct pm_view *view; /* of the interval */
  uint32_t window;            /* 1, 2, ... */
  uint32_t top;               /* rows of functions */
  double attributed;          /* part of the samples that have Python frames, 0 to 1 */
  uint64_t dropped;           /* rows that could not be written so far */
  bool fields;                /* rows in words are wanted with their fields */
};

/*
 * The rows of a report: the process, its threads, the number of functions, the
 * top functions by self time. An idle process gets the first row only.
 */
void pm__report_text(const struct pm_report *report, pm_report_sink sink, void *context);
/* The same as JSON objects, one a row. */
void pm__report_json(const struct pm_report *report, pm_report_sink sink, void *context);

/* What both formats show, chosen once. */
struct pm_report_choice {
  const struct pm_view_frame **functions; /* most self time first */
  uint32_t function_count;
  uint32_t active;  /* Python functions that were called or sampled */
  uint32_t threads; /* of view->threads, from the first */
  uint64_t rest_ns; /* CPU of the threads that are not shown */
  uint64_t error_ns; /* the largest self_error_ns of the functions */
  bool idle;
};
/* False when memory is short. Free functions with free(). */
bool pm__report_choose(const struct pm_report *report, struct pm_report_choice *choice);

/*
 * `row` with a mark that says why it is not where it should be: "[profile waited] ...", or
 * {"unlogged": "waited", ...}. In `out`, PM_REPORT_ROW_MAX bytes; its size.
 */
size_t pm__report_mark(const char *row, size_t size, const char *mark, char *out);

/*
 * Writes a row to a descriptor in one write(2). A reader that is slow gets
 * `patience_ms`, then the row is dropped, so no row is ever half written. False
 * when it was dropped.
 */
bool pm__report_write(int fd, const char *row, size_t size, int patience_ms);

/* A line of ours on standard error, "pyrometer: " before it: cut when too long, dropped as above. */
__attribute__((format(printf, 1, 2))) void pm__report_tell(const char *format, ...);

/*
 * Around the rows of one report: processes that write to one descriptor, like the workers
 * of a server, take turns, so that their reports do not mix. Whoever waited `patience_ms`
 * writes all the same. In a forked child the turn is given back: it was the parent's.
 */
void pm__report_take_turn(int fd, int patience_ms);
void pm__report_give_turn(void);

#endif /* PM_REPORT_REPORT_H */
