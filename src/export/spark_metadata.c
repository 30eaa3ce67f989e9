/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spark_metadata.c: .sparkprofile, all but the call trees; see spark.h.
 *
 * No platform_statistics: the viewer would show gauges of CPU, memory and disk over
 * the last minutes, and an exporter, which may run long after the profile or (after
 * a crash) in another process, has no honest figure for them. What system_statistics
 * holds is known; the viewer's information page needs os, cpu and java in it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "export/spark.h"

#define SAFE_INTEGER ((INT64_C(1) << 53) - 1)
#define EXTRA_FLAGS (JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15))

int64_t pm__spark_int64(int64_t value) {
  if (value > SAFE_INTEGER) {
    return SAFE_INTEGER;
  }
  return value < -SAFE_INTEGER ? -SAFE_INTEGER : value;
}

int32_t pm__spark_int32(int64_t value) {
  if (value > INT32_MAX) {
    return INT32_MAX;
  }
  return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

static int32_t cpu_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : pm__spark_int32(count);
}

static char *clean(struct pm_spark *spark, const char *text) {
  return pm__proto_text(pm__text_clean(&spark->arena, text));
}

static void set_platform(struct pm_spark *spark, Spark__PlatformMetadata *platform) {
  spark__platform_metadata__init(platform);
  platform->type = SPARK__PLATFORM_METADATA__TYPE__APPLICATION;
  platform->name = pm__proto_text("Pyrometer");
  platform->brand = pm__proto_text("Pyrometer");
  platform->version = clean(spark, spark->view->version);
  platform->spark_version = 2; /* less makes the viewer warn of an old version */
}

/* The viewer says "is using Java <version> (<vendor_version> from <vendor>)". */
static void set_java(struct pm_spark *spark, Spark__SystemStatistics__Java *java) {
  const char *python = clean(spark, spark->view->python_version);
  spark__system_statistics__java__init(java);
  java->vendor = pm__proto_text("Pyrometer");
  java->vendor_version = clean(spark, spark->view->python_state);
  java->version = pm__proto_text("(none)");
  if (*python != 0) {
    const char *build = spark->view->python_free_threaded ? " free-threaded" : "";
    java->version =
        pm__proto_text(pm__text_format(&spark->arena, "(none; CPython %s%s)", python, build));
  }
}

static void set_os(struct pm_spark *spark, Spark__SystemStatistics__Os *os) {
  struct utsname name;
  spark__system_statistics__os__init(os);
  if (uname(&name) == 0) {
    os->name = pm__proto_text(pm__text_format(&spark->arena, "%s", name.sysname));
    os->version = pm__proto_text(pm__text_format(&spark->arena, "%s", name.release));
    os->arch = pm__proto_text(pm__text_format(&spark->arena, "%s", name.machine));
  }
}

/* Each diagnostics key becomes an entry whose value is a JSON document. */
static void set_extra(struct pm_spark *spark, Spark__SamplerMetadata *metadata) {
  size_t count = json_object_size(spark->view->diagnostics), used = 0;
  Spark__StringEntry *entries = pm__arena_take(&spark->arena, count, sizeof(*entries));
  Spark__StringEntry **order = pm__arena_take(&spark->arena, count, sizeof(*order));
  const char *key;
  json_t *value;
  json_object_foreach(spark->view->diagnostics, key, value) {
    char *text = json_dumps(value, EXTRA_FLAGS);
    if (text == NULL || spark->arena.failed) {
      spark->arena.failed = true;
      free(text);
      return;
    }
    order[used] = &entries[used];
    spark__string_entry__init(order[used]);
    order[used]->key = clean(spark, key);
    order[used]->value = clean(spark, pm__text_format(&spark->arena, "%s", text));
    free(text);
    used++;
  }
  metadata->n_extra_platform_metadata = used;
  metadata->extra_platform_metadata = order;
}

static void set_scalars(struct pm_spark *spark, Spark__SamplerMetadata *metadata) {
  const struct pm_view *view = spark->view;
  metadata->start_time = pm__spark_int64(view->start_ms);
  metadata->end_time = pm__spark_int64(view->end_ms);
  metadata->interval = view->rate_hz == 0 ? 0 : pm__spark_int32(1000000 / view->rate_hz);
  metadata->comment = pm__proto_text(pm__label_summary(&spark->arena, view));
  metadata->sampler_mode = SPARK__SAMPLER_METADATA__SAMPLER_MODE__EXECUTION;
  metadata->sampler_engine = SPARK__SAMPLER_METADATA__SAMPLER_ENGINE__ASYNC;
  metadata->sampler_engine_version =
      clean(spark, pm__text_format(&spark->arena, "pyrometer %s", view->version));
}

static void put_metadata(struct pm_spark *spark, Spark__SamplerMetadata *metadata) {
  Spark__SamplerData data = SPARK__SAMPLER_DATA__INIT;
  data.metadata = metadata;
  pm__proto_put(&spark->stream, &data.base);
}

void pm__spark_metadata(struct pm_spark *spark) {
  Spark__CommandSender creator = SPARK__COMMAND_SENDER__INIT;
  creator.name = pm__proto_text(pm__text_format(
      &spark->arena, "%s (pid %d)", clean(spark, spark->view->command), spark->view->pid));
  Spark__ThreadDumper dumper = SPARK__THREAD_DUMPER__INIT;
  Spark__DataAggregator aggregator = SPARK__DATA_AGGREGATOR__INIT;
  Spark__PlatformMetadata platform;
  set_platform(spark, &platform);
  Spark__SystemStatistics__Cpu cpu = SPARK__SYSTEM_STATISTICS__CPU__INIT;
  cpu.threads = cpu_count();
  Spark__SystemStatistics__Os os;
  set_os(spark, &os);
  Spark__SystemStatistics__Java java;
  set_java(spark, &java);
  Spark__SystemStatistics system = SPARK__SYSTEM_STATISTICS__INIT;
  system.cpu = &cpu;
  system.os = &os;
  system.java = &java;
  system.uptime = pm__spark_int64(spark->view->end_ms - spark->view->start_ms);
  Spark__SamplerMetadata metadata = SPARK__SAMPLER_METADATA__INIT;
  metadata.creator = &creator;
  metadata.thread_dumper = &dumper;
  metadata.data_aggregator = &aggregator;
  metadata.platform_metadata = &platform;
  metadata.system_statistics = &system;
  set_scalars(spark, &metadata);
  set_extra(spark, &metadata);
  put_metadata(spark, &metadata);
}

/* The window's share of all CPUs, which is what spark calls process CPU. */
static double cpu_share(const struct pm_view_window *window) {
  double room = (double)(window->end_ms - window->start_ms) * 1e6 * cpu_count();
  double share = room > 0 ? (double)window->cpu_ns / room : 0;
  return share < 1 ? share : 1;
}

static void put_window(struct pm_spark *spark, const struct pm_view_window *window) {
  Spark__WindowStatistics statistics = SPARK__WINDOW_STATISTICS__INIT;
  statistics.cpu_process = cpu_share(window);
  statistics.start_time = pm__spark_int64(window->start_ms);
  statistics.end_time = pm__spark_int64(window->end_ms);
  statistics.duration = pm__spark_int32(window->end_ms - window->start_ms);
  Spark__WindowEntry entry = SPARK__WINDOW_ENTRY__INIT, *entries = &entry;
  entry.key = window->id;
  entry.value = &statistics;
  int32_t id = window->id;
  Spark__SamplerData data = SPARK__SAMPLER_DATA__INIT;
  data.n_time_windows = 1;
  data.time_windows = &id;
  data.n_time_window_statistics = 1;
  data.time_window_statistics = &entries;
  pm__proto_put(&spark->stream, &data.base);
}

void pm__spark_windows(struct pm_spark *spark) {
  for (uint32_t i = 0; i < spark->view->window_count; i++) {
    put_window(spark, &spark->view->windows[i]);
  }
}

struct source {
  const struct pm_spark_frame *frame;
  const char *id;
};

static int compare_classes(const void *a, const void *b) {
  const struct source *left = a, *right = b;
  return strcmp(left->frame->class_name, right->frame->class_name);
}

static void put_source(struct pm_spark *spark, const char *key, const char *id, bool class) {
  Spark__StringEntry entry = SPARK__STRING_ENTRY__INIT, *entries = &entry;
  entry.key = pm__proto_text(key);
  entry.value = pm__proto_text(id);
  Spark__SamplerData data = SPARK__SAMPLER_DATA__INIT;
  data.n_class_sources = class ? 1 : 0;
  data.class_sources = &entries;
  data.n_method_sources = class ? 0 : 1;
  data.method_sources = &entries;
  pm__proto_put(&spark->stream, &data.base);
}

/* A class of one source is named once; in a mixed one each method has its own. */
static void put_class(struct pm_spark *spark, const struct source *sources, size_t count) {
  bool mixed = false;
  for (size_t i = 1; i < count; i++) {
    mixed |= strcmp(sources[0].id, sources[i].id) != 0;
  }
  for (size_t i = 0; mixed && i < count; i++) {
    const struct pm_spark_frame *frame = sources[i].frame;
    if (*sources[i].id != 0) {
      const char *key =
          pm__text_format(&spark->arena, "%s;%s;%s", frame->class_name, frame->method, frame->desc);
      put_source(spark, key, sources[i].id, false);
    }
  }
  if (!mixed && *sources[0].id != 0) {
    put_source(spark, sources[0].frame->class_name, sources[0].id, true);
  }
}

void pm__spark_sources(struct pm_spark *spark) {
  uint32_t count = spark->view->frame_count;
  struct source *sources = pm__arena_take(&spark->arena, count, sizeof(*sources));
  if (sources == NULL) {
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    sources[i].frame = &spark->frames[i];
    sources[i].id = clean(spark, spark->view->frames[i].source);
  }
  qsort(sources, count, sizeof(*sources), compare_classes);
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && compare_classes(&sources[i], &sources[end]) == 0; end++) {
    }
    put_class(spark, sources + i, end - i);
  }
}
