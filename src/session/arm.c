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
#include "session/toggle.h"

/*
 * Many processes that inherit the variable are children that live for moments: what a
 * start costs is not spent on them.
 */
enum { DELAY_MS = 50 };

/*
 * Owner:    pyrometer_arm's first call; constant afterwards.
 * Readers:  its later calls, the toggle, and a child's first event after a fork.
 */
static struct {
  struct pm_environment environment;
  int answer;
} armed;

static void say(const char *message) { pm__report_tell("%s; not started", message); }

static int start_armed(uint32_t delay_ms) {
  int error = pm__session_start(&armed.environment.options, delay_ms);
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
  int error = start_armed(DELAY_MS);
  if (error != PYROMETER_OK) return error;
  return (int)(armed.environment.flags | PYROMETER_ARM_STARTED |
               (uint32_t)armed.environment.toggle << PYROMETER_ARM_SIGNAL_SHIFT);
}

static int switch_over(uint32_t delay_ms) {
  if (armed.answer <= 0) return PYROMETER_E_NOT_RUNNING;
  int error = pyrometer_stop();
  return error == PYROMETER_E_NOT_RUNNING ? start_armed(delay_ms) : error;
}

/* On a thread of ours: Python is to be attached from one of its own. */
static void toggle(void) { switch_over(1); }

static void arm_once(void) { armed.answer = arm(); }

/* Also for the children's sake: one line is enough, and "children" is for them. */
void pm__arm_preloaded(void) {
  int answer = pyrometer_arm();
  bool children = answer > 0 && (armed.environment.flags & PYROMETER_ARM_CHILDREN);
  if (!children) unsetenv("PYROMETER");
  if (answer > 0 && armed.environment.toggle != 0) {
    pm__toggle_by(armed.environment.toggle, toggle);
  }
}

int pyrometer_arm(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, arm_once);
  return armed.answer;
}

int pyrometer_toggle(void) { return switch_over(0); }

void pm__arm_in_child(void) {
  if (armed.answer > 0 && (armed.environment.flags & PYROMETER_ARM_CHILDREN)) start_armed(DELAY_MS);
}
