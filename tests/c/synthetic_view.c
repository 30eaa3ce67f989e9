/* SPDX-License-Identifier: Apache-2.0 */
/* synthetic_view.c: builds views by hand; see synthetic_view.h. */
#include "synthetic_view.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *need(void *memory) {
  if (memory == NULL) {
    abort();
  }
  return memory;
}

static void grow(void **array, size_t *room, size_t count, size_t size) {
  if (count < *room) {
    return;
  }
  *room = *room == 0 ? 64 : 2 * *room;
  *array = need(realloc(*array, *room * size));
}

struct synthetic *synthetic_new(uint32_t windows) {
  struct synthetic *s = need(calloc(1, sizeof(*s)));
  s->windows = need(calloc(windows, sizeof(*s->windows)));
  for (uint32_t w = 0; w < windows; w++) {
    s->windows[w].id = (int32_t)(SYNTHETIC_START_MINUTE + w);
    s->windows[w].start_ms = s->windows[w].id * INT64_C(60000);
    s->windows[w].end_ms = s->windows[w].start_ms + 60000;
  }
  s->objects = need(calloc(1, sizeof(*s->objects)));
  s->objects[0] = (struct pm_view_object){"/usr/lib/libm.so.6", "0123456789abcdef", 0x7f0000001000,
                                          0x7f0000101000, 0x7f0000000000};
  s->view = (struct pm_view){.version = "9.8.7",
                             .pid = 71,
                             .command = "app.py",
                             .rate_hz = 100,
                             .overhead_pct = 0.9,
                             .python_version = "3.12.1",
                             .python_state = "attributed",
                             .python_reason = ""};
  s->view.window_count = windows;
  s->view.diagnostics =
      json_pack("{s:s, s:i, s:{s:i, s:i}, s:f}", "backend", "monitoring", "signals", 8343, "lost",
                "ring_full", 2, "seqlock", 1, "share", 0.5);
  return s;
}

void synthetic_free(struct synthetic *s) {
  json_decref(s->view.diagnostics);
  for (size_t i = 0; i < s->text_count; i++) {
    free(s->texts[i]);
  }
  free(s->texts);
  free(s->frames);
  free(s->objects);
  free(s->threads);
  free(s->nodes);
  free(s->windows);
  free(s->totals);
  free(s);
}

const char *synthetic_text(struct synthetic *s, const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) < 0) {
    abort();
  }
  va_end(arguments);
  grow((void **)&s->texts, &s->text_room, s->text_count, sizeof(*s->texts));
  return s->texts[s->text_count++] = text;
}

static uint32_t add_frame(struct synthetic *s, struct pm_view_frame frame) {
  uint32_t index = s->view.frame_count++;
  grow((void **)&s->frames, &s->frame_room, index, sizeof(*s->frames));
  s->frames[index] = frame;
  return index;
}

uint32_t synthetic_python(struct synthetic *s, const char *module, const char *qualname,
                          const char *file, uint32_t line) {
  const char *name = synthetic_text(s, "%s.%s (%s:%u)", module, qualname, file, line);
  return add_frame(s, (struct pm_view_frame){.kind = PM_FRAME_PYTHON,
                                             .name = name,
                                             .function = qualname,
                                             .module = module,
                                             .file = file,
                                             .line = line,
                                             .category = "application",
                                             .source = "",
                                             .object = UINT32_MAX,
                                             .calls = 3,
                                             .calls_exact = true});
}

uint32_t synthetic_native(struct synthetic *s, const char *object, const char *symbol,
                          uint64_t rva) {
  return add_frame(s, (struct pm_view_frame){.kind = PM_FRAME_NATIVE,
                                             .name = synthetic_text(s, "%s!%s", object, symbol),
                                             .function = symbol,
                                             .module = object,
                                             .file = synthetic_text(s, "/usr/lib/%s", object),
                                             .category = "native",
                                             .source = "",
                                             .address = rva});
}

uint32_t synthetic_pseudo(struct synthetic *s, const char *name) {
  return add_frame(s, (struct pm_view_frame){.kind = PM_FRAME_PSEUDO,
                                             .name = name,
                                             .function = name,
                                             .module = "",
                                             .file = "",
                                             .category = "pyrometer",
                                             .source = "",
                                             .object = UINT32_MAX});
}

struct pm_view_thread *synthetic_thread(struct synthetic *s, const char *name, int32_t tid) {
  uint32_t index = s->view.thread_count++;
  grow((void **)&s->threads, &s->thread_room, index, sizeof(*s->threads));
  s->threads[index] = (struct pm_view_thread){
      .name = name, .tid = tid, .main = index == 0, .reason = "", .samples = UINT64_MAX};
  s->threads[index].first_node = s->view.node_count;
  return &s->threads[index];
}

static uint64_t *total_of(struct synthetic *s, uint32_t node, uint32_t window) {
  return &s->totals[(size_t)node * s->view.window_count + window];
}

void synthetic_enter(struct synthetic *s, uint32_t frame) {
  uint32_t index = s->view.node_count++;
  size_t room = s->node_room;
  grow((void **)&s->nodes, &s->node_room, index, sizeof(*s->nodes));
  if (room != s->node_room) {
    size_t size = s->node_room * s->view.window_count * sizeof(*s->totals);
    s->totals = need(realloc(s->totals, size));
  }
  memset(total_of(s, index, 0), 0, s->view.window_count * sizeof(*s->totals));
  s->nodes[index] = (struct pm_view_node){.frame = frame, .depth = s->depth};
  s->path[s->depth++] = index;
  s->threads[s->view.thread_count - 1].node_count++;
}

void synthetic_leave(struct synthetic *s) {
  uint32_t index = s->path[--s->depth];
  s->nodes[index].subtree = s->view.node_count - index;
}

void synthetic_burn(struct synthetic *s, uint32_t window, uint64_t ns) {
  s->nodes[s->path[s->depth - 1]].self_ns += ns;
  for (uint32_t i = 0; i < s->depth; i++) {
    s->nodes[s->path[i]].total_ns += ns;
    *total_of(s, s->path[i], window) += ns;
  }
}

void synthetic_leaf(struct synthetic *s, uint32_t frame, uint32_t window, uint64_t ns) {
  synthetic_enter(s, frame);
  synthetic_burn(s, window, ns);
  synthetic_leave(s);
}

/* `open[frame]`: how often the frame stands on the path; its total counts at the first. */
static void add_node(struct synthetic *s, uint32_t index, uint32_t *open, uint32_t *depth) {
  struct pm_view_node *node = &s->nodes[index];
  for (; *depth > node->depth; --*depth) {
    open[s->nodes[s->path[*depth - 1]].frame]--;
  }
  s->path[(*depth)++] = index;
  struct pm_view_frame *frame = &s->frames[node->frame];
  frame->self_ns += node->self_ns;
  frame->total_ns += open[node->frame]++ == 0 ? node->total_ns : 0;
}

static void finish_thread(struct synthetic *s, struct pm_view_thread *thread) {
  uint32_t *open = need(calloc(s->view.frame_count + 1, sizeof(*open)));
  uint32_t depth = 0;
  for (uint32_t i = 0; i < thread->node_count; i++) {
    const struct pm_view_node *node = &s->nodes[thread->first_node + i];
    add_node(s, thread->first_node + i, open, &depth);
    if (node->depth == 0) {
      bool sampled = strcmp(s->frames[node->frame].function, "(unsampled)") != 0;
      thread->cpu_ns += node->total_ns;
      thread->sampled_ns += sampled ? node->total_ns : 0;
      for (uint32_t w = 0; w < s->view.window_count; w++) {
        s->windows[w].cpu_ns += *total_of(s, thread->first_node + i, w);
      }
    }
  }
  if (thread->samples == UINT64_MAX) {
    thread->samples = thread->sampled_ns / 10000000;
  }
  s->view.cpu_ns += thread->cpu_ns;
  s->view.sampled_ns += thread->sampled_ns;
  s->view.samples += thread->samples;
  free(open);
}

const struct pm_view *synthetic_finish(struct synthetic *s) {
  struct pm_view *view = &s->view;
  for (uint32_t i = 0; i < view->thread_count; i++) {
    finish_thread(s, &s->threads[i]);
  }
  view->start_ms = s->windows[0].start_ms;
  view->end_ms = s->windows[view->window_count - 1].end_ms;
  view->seconds = (double)(view->end_ms - view->start_ms) / 1e3;
  view->frames = s->frames;
  view->objects = s->objects;
  view->object_count = 1;
  view->threads = s->threads;
  view->nodes = s->nodes;
  view->windows = s->windows;
  view->total_by_window = s->totals;
  return view;
}
