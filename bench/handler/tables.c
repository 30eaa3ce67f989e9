/* SPDX-License-Identifier: Apache-2.0 */
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/ehframe.h"

struct cost {
  double text_kb, rows, bytes, copy_ms, build_ms;
};

static void print(const char *name, struct cost cost) {
  printf("  %-34s %9.0f %9.0f %9.1f %8.2f %9.2f %9.2f\n", name, cost.text_kb, cost.rows,
         cost.bytes / 1024, cost.rows > 0 ? cost.bytes / cost.rows : 0, cost.copy_ms,
         cost.build_ms);
}

/* The quickest of three: the machine has other work. */
static struct cost cost_of(const struct pm_image *image) {
  struct cost best = {.copy_ms = 1e9, .build_ms = 1e9};
  for (unsigned i = 0; i < 3; i++) {
    struct pm_eh_frame eh_frame;
    uint64_t start = pm__clock_monotonic();
    if (!pm__ehframe_copy(image, &eh_frame)) return (struct cost){0};
    uint64_t copied = pm__clock_monotonic();
    struct pm_compiled *compiled = pm__ehframe_compile(&eh_frame, image->text_lo, image->text_hi);
    uint64_t built = pm__clock_monotonic();
    if (!compiled) return (struct cost){0};
    best.text_kb = (double)(image->text_hi - image->text_lo) / 1024;
    best.rows = compiled->table.rows;
    best.bytes = (double)compiled->bytes;
    if ((double)(copied - start) / 1e6 < best.copy_ms)
      best.copy_ms = (double)(copied - start) / 1e6;
    if ((double)(built - copied) / 1e6 < best.build_ms)
      best.build_ms = (double)(built - copied) / 1e6;
    pm__compiled_free(compiled);
    pm__ehframe_free(&eh_frame);
  }
  return best;
}

void tables_report(void) {
  struct pm_image_list list;
  struct cost sum = {0};
  if (pm__image_scan(&list)) return;
  printf("\ntables\n  %-34s %9s %9s %9s %8s %9s %9s\n", "object", "text kB", "rows", "kB", "B/row",
         "copy ms", "build ms");
  for (uint32_t i = 0; i < list.count; i++) {
    struct cost cost = cost_of(&list.image[i]);
    char *path = pm__image_path(&list, &list.image[i]), *slash = strrchr(path, '/');
    if (cost.rows > 2000) print(slash ? slash + 1 : path, cost);
    free(path);
    sum.text_kb += cost.text_kb, sum.rows += cost.rows, sum.bytes += cost.bytes;
    sum.copy_ms += cost.copy_ms, sum.build_ms += cost.build_ms;
  }
  char name[40];
  snprintf(name, sizeof name, "all %u objects", list.count);
  print(name, sum);
  pm__image_list_free(&list);
}
