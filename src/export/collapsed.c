/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collapsed.c: .collapsed, one line a stack: thread, frames from the root, weight in
 * microseconds of CPU. What flamegraph.pl, speedscope and inferno read.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "export/label.h"
#include "export/stream.h"
#include "pyrometer.h"

struct encoder {
  const struct pm_view *view;
  struct pm_arena arena;
  struct pm_stream stream;
  const char **names; /* by frame: the separator, the name */
  uint64_t ns;        /* of self CPU up to here, over all threads: rounding loses nothing */
};

/* `text` behind a `;`, without any of its own. */
static const char *part_of(struct pm_arena *arena, const char *text) {
  char *part = (char *)pm__text_format(arena, ";%s", pm__text_clean(arena, text));
  for (char *at = *part == 0 ? part : part + 1; *at != 0; at++) {
    *at = *at == ';' ? ':' : *at;
  }
  return part;
}

static void put_text(struct encoder *encoder, const char *text) {
  pm__stream_put(&encoder->stream, text, strlen(text));
}

static void put_line(struct encoder *encoder, const char *thread, const uint32_t *path,
                     uint32_t depth, uint64_t weight) {
  char number[32];
  snprintf(number, sizeof(number), " %llu\n", (unsigned long long)weight);
  put_text(encoder, thread + 1);
  for (uint32_t i = 0; i <= depth; i++) {
    put_text(encoder, encoder->names[path[i]]);
  }
  put_text(encoder, number);
}

static void put_thread(struct encoder *encoder, const struct pm_view_thread *thread,
                       const char *name, uint32_t *path) {
  const struct pm_view_node *nodes = encoder->view->nodes + thread->first_node;
  for (uint32_t i = 0; i < thread->node_count; i++) {
    path[nodes[i].depth] = nodes[i].frame;
    uint64_t before = encoder->ns / 1000;
    encoder->ns += nodes[i].self_ns;
    uint64_t weight = encoder->ns / 1000 - before;
    if (weight > 0) {
      put_line(encoder, name, path, nodes[i].depth, weight);
    }
  }
}

static uint32_t *path_room(struct encoder *encoder) {
  uint32_t deepest = 0;
  for (uint32_t i = 0; i < encoder->view->node_count; i++) {
    uint32_t depth = encoder->view->nodes[i].depth;
    deepest = depth > deepest ? depth : deepest;
  }
  return pm__arena_take(&encoder->arena, (size_t)deepest + 1, sizeof(uint32_t));
}

static void encode(struct encoder *encoder) {
  const struct pm_view *view = encoder->view;
  encoder->names = pm__arena_take(&encoder->arena, view->frame_count, sizeof(const char *));
  const char **threads = pm__label_threads(&encoder->arena, view);
  uint32_t *path = path_room(encoder);
  for (uint32_t i = 0; !encoder->arena.failed && i < view->frame_count; i++) {
    encoder->names[i] = part_of(&encoder->arena, view->frames[i].name);
  }
  for (uint32_t i = 0; !encoder->arena.failed && i < view->thread_count; i++) {
    const char *name = part_of(&encoder->arena, threads[i]);
    if (!encoder->arena.failed) {
      put_thread(encoder, &view->threads[i], name, path);
    }
  }
}

int pm__export_collapsed(const struct pm_view *view, pm_export_sink sink, void *context) {
  struct encoder encoder = {.view = view};
  pm__stream_open(&encoder.stream, sink, context);
  encode(&encoder);
  int result = encoder.arena.failed ? PYROMETER_E_MEMORY : pm__stream_close(&encoder.stream);
  pm__arena_free(&encoder.arena);
  return result;
}
