/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spark.h: what the parts of the Spark encoder share.
 *
 * The format is the one that lucko's spark viewer reads (spark.lucko.me). It is
 * strict: one bad text or a number past 2^53, and the viewer shows nothing.
 */
#ifndef PM_EXPORT_SPARK_H
#define PM_EXPORT_SPARK_H

#include "base/text.h"
#include "export/label.h"
#include "export/proto.h"
#include "spark.pb-c.h"

/* What the viewer shows of a frame; `desc` and `line` tell equal names apart. */
struct pm_spark_frame {
  const char *class_name, *method, *desc;
  int32_t line;
};

struct pm_spark {
  const struct pm_view *view;
  struct pm_arena arena;
  struct pm_stream stream;
  const struct pm_spark_frame *frames; /* by index of the view's frames */
  const char **thread_names;           /* by index of the view's threads */
};

/* The viewer's numbers are doubles. */
int64_t pm__spark_int64(int64_t value);
int32_t pm__spark_int32(int64_t value);

void pm__spark_metadata(struct pm_spark *spark);
void pm__spark_windows(struct pm_spark *spark);
void pm__spark_sources(struct pm_spark *spark);

#endif /* PM_EXPORT_SPARK_H */
