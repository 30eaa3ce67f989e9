/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: .json, the summary: functions, threads and diagnostics, but no stacks. */
#include <math.h>
#include <stdlib.h>

#include "base/text.h"
#include "export/stream.h"
#include "pyrometer.h"

/* Nanoseconds stay exact up to eleven days of CPU; 17 digits would print 0.1 as 0.1000...1. */
#define FLAGS (JSON_INDENT(1) | JSON_REAL_PRECISION(15))

struct encoder {
  const struct pm_view *view;
  struct pm_arena arena;
  struct pm_stream stream;
};

static json_t *text(struct encoder *encoder, const char *string) {
  return json_string(pm__text_clean(&encoder->arena, string));
}

/* JSON has no NaN and no infinity. */
static json_t *number(double value) { return json_real(isfinite(value) ? value : 0); }

static json_t *seconds(uint64_t ns) { return number((double)ns / 1e9); }

static json_t *integer(uint64_t value) {
  return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/* `o` takes each value over; a value that could not be made makes the whole NULL. */
static json_t *python_of(struct encoder *encoder) {
  const struct pm_view *view = encoder->view;
  return json_pack("{s:o, s:b, s:o, s:o}", "version", text(encoder, view->python_version),
                   "free_threaded", view->python_free_threaded, "state",
                   text(encoder, view->python_state), "reason", text(encoder, view->python_reason));
}

static json_t *thread_of(struct encoder *encoder, const struct pm_view_thread *thread) {
  return json_pack("{s:o, s:i, s:o, s:o, s:o}", "name", text(encoder, thread->name), "tid",
                   (int)thread->tid, "cpu_s", seconds(thread->cpu_ns), "sampled_s",
                   seconds(thread->sampled_ns), "reason", text(encoder, thread->reason));
}

static json_t *threads_of(struct encoder *encoder) {
  json_t *threads = json_array();
  for (uint32_t i = 0; i < encoder->view->thread_count; i++) {
    if (json_array_append_new(threads, thread_of(encoder, &encoder->view->threads[i])) != 0) {
      encoder->arena.failed = true;
    }
  }
  return threads;
}

/* Calls are counted by events, which only Python functions have. */
static json_t *function_of(struct encoder *encoder, const struct pm_view_frame *frame) {
  bool python = frame->kind == PM_FRAME_PYTHON;
  return json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o*}", "name", text(encoder, frame->name),
      "file", text(encoder, frame->file), "line", integer(python ? frame->line : 0), "category",
      text(encoder, frame->category), "source", text(encoder, frame->source), "self_s",
      seconds(frame->self_ns), "total_s", seconds(frame->total_ns), "calls",
      python ? integer(frame->calls) : json_null(), "calls_exact", python && frame->calls_exact,
      "self_error_s", frame->self_error_ns > 0 ? seconds(frame->self_error_ns) : NULL);
}

/* Most self time first, then most total; the view's order (addresses) decides the rest. */
static int compare_functions(const void *a, const void *b) {
  const struct pm_view_frame *left = *(const struct pm_view_frame *const *)a;
  const struct pm_view_frame *right = *(const struct pm_view_frame *const *)b;
  if (left->self_ns != right->self_ns) {
    return left->self_ns < right->self_ns ? 1 : -1;
  }
  if (left->total_ns != right->total_ns) {
    return left->total_ns < right->total_ns ? 1 : -1;
  }
  return left < right ? -1 : left > right;
}

static json_t *functions_of(struct encoder *encoder) {
  uint32_t count = encoder->view->frame_count;
  const struct pm_view_frame **order = pm__arena_take(&encoder->arena, count, sizeof(*order));
  json_t *functions = json_array();
  for (uint32_t i = 0; order != NULL && i < count; i++) {
    order[i] = &encoder->view->frames[i];
  }
  if (order != NULL) {
    qsort(order, count, sizeof(*order), compare_functions);
  }
  for (uint32_t i = 0; order != NULL && i < count; i++) {
    if (json_array_append_new(functions, function_of(encoder, order[i])) != 0) {
      encoder->arena.failed = true;
    }
  }
  return functions;
}

static json_t *diagnostics_of(const struct pm_view *view) {
  return view->diagnostics == NULL ? json_object() : json_incref(view->diagnostics);
}

static json_t *document_of(struct encoder *encoder) {
  const struct pm_view *view = encoder->view;
  return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pyrometer",
                   text(encoder, view->version), "pid", (int)view->pid, "start",
                   number((double)view->start_ms / 1e3), "seconds", number(view->seconds), "python",
                   python_of(encoder), "cpu_s", seconds(view->cpu_ns), "sampled_s",
                   seconds(view->sampled_ns), "overhead_pct", number(view->overhead_pct), "threads",
                   threads_of(encoder), "functions", functions_of(encoder), "diagnostics",
                   diagnostics_of(view));
}

static int put(const char *bytes, size_t size, void *stream) {
  pm__stream_put(stream, bytes, size);
  return ((struct pm_stream *)stream)->error == 0 ? 0 : -1;
}

static int encode(struct encoder *encoder) {
  json_t *document = document_of(encoder);
  if (document == NULL || encoder->arena.failed) {
    json_decref(document);
    return PYROMETER_E_MEMORY;
  }
  int dumped = json_dump_callback(document, put, &encoder->stream, FLAGS);
  json_decref(document);
  pm__stream_put(&encoder->stream, "\n", 1);
  int closed = pm__stream_close(&encoder->stream);
  return closed == 0 && dumped != 0 ? PYROMETER_E_MEMORY : closed;
}

int pm__export_json(const struct pm_view *view, pm_export_sink sink, void *context) {
  struct encoder encoder = {.view = view};
  pm__stream_open(&encoder.stream, sink, context);
  int result = encode(&encoder);
  pm__arena_free(&encoder.arena);
  return result;
}
