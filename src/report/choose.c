/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads and functions a report shows. */
#include <stdlib.h>

#include "report/report.h"

enum { THREADS_MAX = 50 };

static const double idle_cores = 0.01;
static const uint64_t thread_least_ns = 1000000u;

static int by_self(const void *left, const void *right) {
  const struct pm_view_frame *a = *(const struct pm_view_frame *const *)left;
  const struct pm_view_frame *b = *(const struct pm_view_frame *const *)right;
  if (a->self_ns != b->self_ns) return a->self_ns > b->self_ns ? -1 : 1;
  return (a > b) - (a < b);
}

static void choose_functions(const struct pm_report *report, struct pm_report_choice *choice) {
  for (uint32_t i = 0; i < report->view->frame_count; i++) {
    const struct pm_view_frame *frame = &report->view->frames[i];
    if (frame->kind == PM_FRAME_PYTHON && (frame->calls > 0 || frame->total_ns > 0)) {
      choice->active++;
    }
    if (frame->kind != PM_FRAME_PSEUDO && frame->self_ns > 0) {
      choice->functions[choice->function_count++] = frame;
    }
  }
  qsort(choice->functions, choice->function_count, sizeof(*choice->functions), by_self);
  if (choice->function_count > report->top) choice->function_count = report->top;
  for (uint32_t i = 0; i < choice->function_count; i++) {
    uint64_t error = choice->functions[i]->self_error_ns;
    if (error > choice->error_ns) choice->error_ns = error;
  }
}

static void choose_threads(const struct pm_view *view, struct pm_report_choice *choice) {
  uint32_t shown = 0;
  while (shown < view->thread_count && shown < THREADS_MAX &&
         view->threads[shown].cpu_ns >= thread_least_ns) {
    shown++;
  }
  choice->threads = shown;
  for (uint32_t i = shown; i < view->thread_count; i++) choice->rest_ns += view->threads[i].cpu_ns;
}

bool pm__report_choose(const struct pm_report *report, struct pm_report_choice *choice) {
  const struct pm_view *view = report->view;
  *choice = (struct pm_report_choice){0};
  choice->idle = (double)view->cpu_ns / 1e9 < idle_cores * view->seconds;
  choice->functions = malloc(sizeof(*choice->functions) * (view->frame_count + 1));
  if (choice->functions == NULL) return false;
  choose_functions(report, choice);
  choose_threads(view, choice);
  return true;
}
