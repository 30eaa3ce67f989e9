/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment variable PYROMETER asks for. */
#ifndef PM_SESSION_ENVIRONMENT_H
#define PM_SESSION_ENVIRONMENT_H

#include <limits.h>
#include <pyrometer.h>

#include "base/base.h"

struct pm_environment {
  struct pyrometer_options options;
  uint32_t flags; /* PYROMETER_ARM_* */
  int toggle;     /* signal number, 0: none */
  char output[PATH_MAX]; /* what options.report_output points to */
};

/*
 * Reads JSON text. False with one line (without line break) in `message` that names
 * the key and what is allowed; `out` is then not to be used.
 */
bool pm__environment_parse(const char *text, struct pm_environment *out, char *message,
                           size_t message_size);

#endif /* PM_SESSION_ENVIRONMENT_H */
