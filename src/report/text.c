/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for people and grep: a fixed tag, then key=value. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "report/fields.h"

struct writer {
  pm_report_sink sink;
  void *context;
  bool fields;
};

static void put_row(const struct writer *writer, json_t *fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A row that is too long loses its end, never its line break. Takes `fields` over. */
static void put_row(const struct writer *writer, json_t *fields, const char *format, ...) {
  char row[PM_REPORT_ROW_MAX];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(row, sizeof row - 1, format, arguments);
  va_end(arguments);
  bool whole = (size_t)length < sizeof row - 1;
  size_t size = whole ? (size_t)length : pm__text_whole(row, sizeof row - 2);
  row[size++] = '\n';
  if (length >= 0) {
    writer->sink(writer->context,
                 &(struct pm_report_row){.text = row, .size = size, .fields = fields});
  }
  json_decref(fields);
}

static double seconds(uint64_t ns) { return (double)ns / 1e9; }

static void put_process(const struct pm_report *report, const struct pm_report_choice *choice,
                        const struct writer *writer) {
  const struct pm_view *view = report->view;
  json_t *fields = writer->fields ? pm__fields_process(report, choice) : NULL;
  char process[96], dropped[48] = "";
  snprintf(process, sizeof process, "[profile] pid=%d ppid=%d window=%u seconds=%.1f", view->pid,
           (int)getppid(), report->window, view->seconds);
  if (report->dropped > 0) {
    snprintf(dropped, sizeof dropped, " rows_dropped=%llu", (unsigned long long)report->dropped);
  }
  if (choice->idle) {
    put_row(writer, fields, "%s idle: %.3f s of CPU%s", process, seconds(view->cpu_ns), dropped);
    return;
  }
  put_row(writer, fields, "%s cores=%.2f samples=%llu attributed=%.1f%% overhead=%.1f%%%s", process,
          seconds(view->cpu_ns) / view->seconds, (unsigned long long)view->samples,
          100.0 * report->attributed, view->overhead_pct, dropped);
  if (view->python_reason[0] != '\0') {
    put_row(writer, writer->fields ? pm__fields_remark(view) : NULL,
            "[profile] no Python frames: %s", view->python_reason);
  }
}

/* Quotes end the name in a row, so the name's own are marked. */
static void quote(char *out, size_t size, const char *name) {
  size_t used = 0;
  for (; *name != '\0' && used + 3 < size; name++) {
    if (*name == '"' || *name == '\\') out[used++] = '\\';
    out[used++] = *name;
  }
  out[used] = '\0';
}

static void put_threads(const struct pm_report *report, const struct pm_report_choice *choice,
                        const struct writer *writer) {
  const struct pm_view *view = report->view;
  for (uint32_t i = 0; i < choice->threads; i++) {
    const struct pm_view_thread *thread = &view->threads[i];
    char name[1024];
    quote(name, sizeof name, thread->name);
    put_row(writer, writer->fields ? pm__fields_thread(view, thread) : NULL,
            "[profile] thread \"%s\" tid=%d cores=%.2f sampled=%.2f%s%s", name, thread->tid,
            seconds(thread->cpu_ns) / view->seconds, seconds(thread->sampled_ns) / view->seconds,
            thread->reason[0] == '\0' ? "" : " unsampled: ", thread->reason);
  }
  if (choice->rest_ns > 0) {
    put_row(writer, writer->fields ? pm__fields_rest(view, choice) : NULL,
            "[profile] %u more threads cores=%.2f", view->thread_count - choice->threads,
            seconds(choice->rest_ns) / view->seconds);
  }
}

/* "module.qualname (dir/file.py:line)": of the file its last folder is enough beside the module. */
static void put_name(char *out, size_t size, const struct pm_view_frame *frame) {
  if (frame->kind != PM_FRAME_PYTHON) {
    snprintf(out, size, "%s", frame->name);
    return;
  }
  const char *file = frame->file, *slash = strrchr(file, '/');
  while (slash != NULL && slash > file && slash[-1] != '/') slash--;
  snprintf(out, size, "%s.%s (%s:%u)", frame->module, frame->function, slash != NULL ? slash : file,
           frame->line);
}

static void put_functions(const struct pm_view *view, const struct pm_report_choice *choice,
                          const struct writer *writer) {
  for (uint32_t i = 0; i < choice->function_count; i++) {
    const struct pm_view_frame *frame = choice->functions[i];
    char name[PM_REPORT_ROW_MAX - 128], calls[32] = "-";
    put_name(name, sizeof name, frame);
    if (frame->kind == PM_FRAME_PYTHON) {
      snprintf(calls, sizeof calls, "%s%llu", frame->calls_exact ? "" : "~",
               (unsigned long long)frame->calls);
    }
    put_row(writer, writer->fields ? pm__fields_function(view, frame) : NULL,
            "[profile] tottime=%.3fs cumtime=%.3fs ncalls=%s %s", seconds(frame->self_ns),
            seconds(frame->total_ns), calls, name);
  }
}

static void put_estimates(const struct pm_view *view, const struct pm_report_choice *choice,
                          const struct writer *writer) {
  if (choice->error_ns == 0) return;
  put_row(writer, writer->fields ? pm__fields_estimates(view, choice) : NULL,
          "[profile] estimates: calls were counted in %.1f%% of the CPU, tottime is within %.3fs",
          100.0 * view->events_share, seconds(choice->error_ns));
}

void pm__report_text(const struct pm_report *report, pm_report_sink sink, void *context) {
  const struct writer writer = {.sink = sink, .context = context, .fields = report->fields};
  struct pm_report_choice choice;
  if (!pm__report_choose(report, &choice)) return;
  put_process(report, &choice, &writer);
  if (!choice.idle) {
    put_threads(report, &choice, &writer);
    put_row(&writer, report->fields ? pm__fields_active(report, &choice) : NULL,
            "[profile] %u functions active in the last %.1fs", choice.active,
            report->view->seconds);
    put_estimates(report->view, &choice, &writer);
    put_functions(report->view, &choice, &writer);
  }
  free(choice.functions);
}
