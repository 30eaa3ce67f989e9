/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for log pipelines: one JSON object each, told apart by "profile". */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

/* Takes the object over. One that is too long for a row is left out: half of it would be no JSON. */
static void put_row(json_t *object, pm_report_sink sink, void *context) {
  char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  json_decref(object);
  size_t size = text == NULL ? 0 : strlen(text);
  if (size > 0 && size < PM_REPORT_ROW_MAX) {
    text[size] = '\n'; /* in place of the NUL */
    sink(context, text, size + 1);
  }
  free(text);
}

static json_t *process_row(const struct pm_report *report, const struct pm_report_choice *choice) {
  const struct pm_view *view = report->view;
  return json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:b, s:I, s:f, s:f, s:I, s:i, s:s}",
                   "profile", "process", "pid", view->pid, "ppid", (int)getppid(), "window",
                   (int)report->window, "seconds", view->seconds, "cpu_s", seconds(view->cpu_ns),
                   "cores", seconds(view->cpu_ns) / view->seconds, "idle", choice->idle, "samples",
                   (json_int_t)view->samples, "attributed_pct", 100.0 * report->attributed,
                   "overhead_pct", view->overhead_pct, "rows_dropped", (json_int_t)report->dropped,
                   "functions_active", (int)choice->active, "reason", view->python_reason);
}

static json_t *thread_row(const struct pm_view *view, const struct pm_view_thread *thread) {
  return json_pack("{s:s, s:i, s:s, s:i, s:f, s:f, s:s}", "profile", "thread", "pid", view->pid,
                   "name", thread->name, "tid", (int)thread->tid, "cores",
                   seconds(thread->cpu_ns) / view->seconds, "sampled",
                   seconds(thread->sampled_ns) / view->seconds, "reason", thread->reason);
}

static json_t *function_row(const struct pm_view *view, const struct pm_view_frame *frame) {
  bool python = frame->kind == PM_FRAME_PYTHON;
  json_t *row = json_pack("{s:s, s:i, s:s, s:s, s:i, s:s, s:f, s:f}", "profile", "function", "pid",
                          view->pid, "name", frame->name, "file", frame->file, "line",
                          (int)frame->line, "category", frame->category, "tottime",
                          seconds(frame->self_ns), "cumtime", seconds(frame->total_ns));
  if (row == NULL) return NULL;
  json_object_set_new(row, "ncalls", python ? json_integer((json_int_t)frame->calls) : json_null());
  json_object_set_new(row, "ncalls_exact", json_boolean(frame->calls_exact));
  return row;
}

void pm__report_json(const struct pm_report *report, pm_report_sink sink, void *context) {
  struct pm_report_choice choice;
  if (!pm__report_choose(report, &choice)) return;
  put_row(process_row(report, &choice), sink, context);
  for (uint32_t i = 0; !choice.idle && i < choice.threads; i++) {
    put_row(thread_row(report->view, &report->view->threads[i]), sink, context);
  }
  for (uint32_t i = 0; !choice.idle && i < choice.function_count; i++) {
    put_row(function_row(report->view, choice.functions[i]), sink, context);
  }
  free(choice.functions);
}
