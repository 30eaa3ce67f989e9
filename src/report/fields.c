/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */
#include "report/fields.h"

#include <unistd.h>

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

json_t *pm__fields_process(const struct pm_report *report, const struct pm_report_choice *choice) {
  const struct pm_view *view = report->view;
  return json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:b, s:I, s:f, s:f, s:I, s:i, s:s}",
                   "profile", "process", "pid", view->pid, "ppid", (int)getppid(), "window",
                   (int)report->window, "seconds", view->seconds, "cpu_s", seconds(view->cpu_ns),
                   "cores", seconds(view->cpu_ns) / view->seconds, "idle", choice->idle, "samples",
                   (json_int_t)view->samples, "attributed_pct", 100.0 * report->attributed,
                   "overhead_pct", view->overhead_pct, "rows_dropped", (json_int_t)report->dropped,
                   "functions_active", (int)choice->active, "reason", view->python_reason);
}

json_t *pm__fields_thread(const struct pm_view *view, const struct pm_view_thread *thread) {
  return json_pack("{s:s, s:i, s:s, s:i, s:f, s:f, s:s}", "profile", "thread", "pid", view->pid,
                   "name", thread->name, "tid", (int)thread->tid, "cores",
                   seconds(thread->cpu_ns) / view->seconds, "sampled",
                   seconds(thread->sampled_ns) / view->seconds, "reason", thread->reason);
}

json_t *pm__fields_function(const struct pm_view *view, const struct pm_view_frame *frame) {
  bool python = frame->kind == PM_FRAME_PYTHON;
  json_t *row = json_pack("{s:s, s:i, s:s, s:s, s:i, s:s, s:f, s:f}", "profile", "function", "pid",
                          view->pid, "name", frame->name, "file", frame->file, "line",
                          (int)frame->line, "category", frame->category, "tottime",
                          seconds(frame->self_ns), "cumtime", seconds(frame->total_ns));
  if (row == NULL) return NULL;
  json_object_set_new(row, "ncalls", python ? json_integer((json_int_t)frame->calls) : json_null());
  json_object_set_new(row, "ncalls_exact", json_boolean(frame->calls_exact));
  if (frame->self_error_ns > 0) {
    json_object_set_new(row, "tottime_error", json_real(seconds(frame->self_error_ns)));
  }
  return row;
}

json_t *pm__fields_active(const struct pm_report *report, const struct pm_report_choice *choice) {
  return json_pack("{s:s, s:i, s:i, s:f}", "profile", "active", "pid", report->view->pid,
                   "functions_active", (int)choice->active, "seconds", report->view->seconds);
}

json_t *pm__fields_estimates(const struct pm_view *view, const struct pm_report_choice *choice) {
  return json_pack("{s:s, s:i, s:f, s:f}", "profile", "estimates", "pid", view->pid, "events_share",
                   view->events_share, "tottime_error", seconds(choice->error_ns));
}

json_t *pm__fields_rest(const struct pm_view *view, const struct pm_report_choice *choice) {
  return json_pack("{s:s, s:i, s:i, s:f}", "profile", "threads", "pid", view->pid, "threads",
                   (int)(view->thread_count - choice->threads), "cores",
                   seconds(choice->rest_ns) / view->seconds);
}

json_t *pm__fields_remark(const struct pm_view *view) {
  return json_pack("{s:s, s:i, s:s}", "profile", "remark", "pid", view->pid, "reason",
                   view->python_reason);
}
