/* SPDX-License-Identifier: Apache-2.0 */
/* Starting from the environment, and again in forked children. */
#include <pthread.h>
#include <pyrometer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "session/environment.h"
#include "session/session.h"

/*
 * Owner:    pyrometer_arm's first call; constant afterwards.
 * Readers:  its later calls, the toggle, and a child's first event after a fork.
 */
static struct {
  struct pm_environment environment;
  int answer;
} armed;

static void say(const char *message) {
  char row[PM_REPORT_ROW_MAX];
  int size = snprintf(row, sizeof row, "pyrometer: %s; not started\n", message);
  pm__report_write(2, row, (size_t)size < sizeof row ? (size_t)size : sizeof row - 1, 100);
}

static int start_armed(void) {
  int error = pyrometer_start(&armed.environment.options);
  if (error != PYROMETER_OK && error != PYROMETER_E_ALREADY_RUNNING) {
    say(pyrometer_strerror(error));
  }
  return error;
}

/* The environment of a set-uid program is somebody else's: secure_getenv hides it. */
static int arm(void) {
  char message[512];
  const char *text = secure_getenv("PYROMETER");
  if (text == NULL || text[0] == '\0') return 0;
  if (!pm__environment_parse(text, &armed.environment, message, sizeof message)) {
    say(message);
    return PYROMETER_E_OPTION;
  }
  int error = start_armed();
  if (error != PYROMETER_OK) return error;
  return (int)(armed.environment.flags | PYROMETER_ARM_STARTED |
               (uint32_t)armed.environment.toggle << PYROMETER_ARM_SIGNAL_SHIFT);
}

static void arm_once(void) { armed.answer = arm(); }

int pyrometer_arm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, arm_once);
  return armed.answer;
}

int pyrometer_toggle(void) {
  if (armed.answer <= 0) return PYROMETER_E_NOT_RUNNING;
  int error = pyrometer_stop();
  return error == PYROMETER_E_NOT_RUNNING ? start_armed() : error;
}

void pm__arm_in_child(void) {
  if (armed.answer > 0 && (armed.environment.flags & PYROMETER_ARM_CHILDREN)) start_armed();
}
