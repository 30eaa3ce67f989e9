/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the rows of the reports go: into a descriptor, a sink, or Python's logging. The
 * latter takes them on the main thread; what it leaves goes to the descriptor with a mark.
 */
#ifndef PM_SESSION_ROWS_H
#define PM_SESSION_ROWS_H

#include "python/python.h"
#include "report/report.h"
#include "session/reporter.h"

/* `options` outlive the session. */
void pm__rows_configure(const struct pm_reporter_options *options);
/* A pm_report_sink: keeps a row for pm__rows_write. Under the profile lock. */
void pm__rows_keep(void *context, const struct pm_report_row *row);
/* Writes or hands over what is there. Collector thread, without any lock. */
void pm__rows_write(void);
/* The collector's last act: nothing is left waiting. */
void pm__rows_end(void);
/* Rows that could not be written so far. */
uint64_t pm__rows_dropped(void);
/* In a forked child: the rows were the parent's. */
void pm__rows_forked(void);

/* For pm_python_hooks; on the main thread, with the GIL. */
bool pm__rows_next(struct pm_log_row *row);
void pm__rows_done(void *owner, const char *outcome);

#endif /* PM_SESSION_ROWS_H */
