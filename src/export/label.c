/* SPDX-License-Identifier: Apache-2.0 */
/* label.c: words that several formats print; see label.h. */
#include "export/label.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int compare_names(const void *a, const void *b) {
  return strcmp(**(const char **const *)a, **(const char **const *)b);
}

/* `order` points into `names`, sorted by name: a run of equal names gets its tids. */
static void number_run(struct pm_arena *arena, const struct pm_view *view, const char **names,
                       const char ***order, uint32_t count) {
  if (count < 2) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    int32_t tid = view->threads[order[i] - names].tid;
    *order[i] = pm__text_format(arena, "%s (#%d)", *order[i], tid);
  }
}

const char **pm__label_threads(struct pm_arena *arena, const struct pm_view *view) {
  uint32_t count = view->thread_count;
  const char **names = pm__arena_take(arena, count, sizeof(*names));
  const char ***order = pm__arena_take(arena, count, sizeof(*order));
  if (names == NULL || order == NULL) {
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    names[i] = pm__text_clean(arena, view->threads[i].name);
    order[i] = &names[i];
  }
  qsort(order, count, sizeof(*order), compare_names);
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && strcmp(*order[i], *order[end]) == 0; end++) {
    }
    number_run(arena, view, names, order + i, end - i);
  }
  return names;
}

static long long lost_samples(const struct pm_view *view) {
  long long lost = 0;
  const char *cause;
  json_t *value;
  json_object_foreach(json_object_get(view->diagnostics, "lost"), cause, value) {
    lost += json_integer_value(value);
  }
  return lost;
}

const char *pm__label_summary(struct pm_arena *arena, const struct pm_view *view) {
  const char *reason = view->python_reason == NULL ? "" : view->python_reason;
  const char *line = pm__text_format(
      arena,
      "pyrometer %s: %llu samples, %lld lost; %.2f s CPU in %.1f s, %.2f s of it sampled; "
      "overhead %.1f %%; Python %s%s%s",
      view->version, (unsigned long long)view->samples, lost_samples(view),
      (double)view->cpu_ns / 1e9, view->seconds, (double)view->sampled_ns / 1e9, view->overhead_pct,
      view->python_state, *reason == 0 ? "" : ": ", reason);
  return pm__text_clean(arena, line);
}
