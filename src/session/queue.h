/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows on their way into Python's logging. The collector puts them in, the main thread
 * takes them; what it did not take in time, or could not log, the collector takes back
 * to write it itself. So each row leaves the queue once.
 * Locks: one mutex, held for no call and no allocation.
 */
#ifndef PM_SESSION_QUEUE_H
#define PM_SESSION_QUEUE_H

#include <jansson.h>

#include "base/base.h"

struct pm_queue_row {
  struct pm_queue_row *next;
  json_t *fields;
  uint64_t deadline; /* CLOCK_MONOTONIC, ns: then it has waited long enough */
  const char *mark;  /* why logging did not take it (static string), or NULL */
  size_t size;       /* of the text, line break included */
  char text[];       /* with a NUL behind it */
};

/* Copies the text and shares the fields. False when memory is short or the queue is full. */
bool pm__queue_put(const char *text, size_t size, json_t *fields, uint64_t deadline);
/* The oldest row that logging has not had yet; NULL: none. The caller owns it. */
struct pm_queue_row *pm__queue_take(void);
/* Logging did not want the row, and `mark` says why: it goes back in. */
void pm__queue_return(struct pm_queue_row *row, const char *mark);
/* A row that has a mark or whose deadline lies before `now`; NULL: none. The caller owns it. */
struct pm_queue_row *pm__queue_take_back(uint64_t now);
/* Is there a row for logging? */
bool pm__queue_has_rows(void);
void pm__queue_free_row(struct pm_queue_row *row);
/* In a forked child: the rows were the parent's. */
void pm__queue_forked(void);

#endif /* PM_SESSION_QUEUE_H */
