/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log reporter: every interval, what that interval burnt, as rows. Part of
 * the collector thread's round; under the profile lock.
 */
#ifndef PM_SESSION_REPORTER_H
#define PM_SESSION_REPORTER_H

#include "base/base.h"

struct pm_reporter_options {
  uint32_t every_ms; /* 0: no reports */
  uint32_t top;
  int fd;
  bool json;
  bool logging;       /* rows go to Python's logging, to fd only what that does not take */
  const char *output; /* folder of profiles, or NULL; read by pm__reporter_configure only */
  int (*sink)(void *context, const void *row, size_t size); /* instead of fd, when not NULL */
  void *context;
  uint32_t rate_hz;
};

/* Before the collector starts. */
void pm__reporter_configure(const struct pm_reporter_options *options);
/* Opens the first interval; threads' clocks have just been read. */
void pm__reporter_begin(uint64_t now);
/* Makes the rows when the interval is over. `collector_ns`: CPU of the collector so far. */
void pm__reporter_round(uint64_t now, uint64_t collector_ns);
/* Writes what the last round made: rows and the profile. Collector thread, without any lock. */
void pm__reporter_write(void);
/* In a forked child: the interval was the parent's. */
void pm__reporter_forked(void);
/* Drops the interval under way. */
void pm__reporter_end(void);

#endif /* PM_SESSION_REPORTER_H */
