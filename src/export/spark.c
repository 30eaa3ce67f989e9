/* SPDX-License-Identifier: Apache-2.0 */
/* spark.c: .sparkprofile, the call trees of the threads; see spark.h. */
#include "export/spark.h"

#include "export/cut.h"
#include "pyrometer.h"

/*
 * The class `native` makes the viewer show the method alone. Pseudo frames are no
 * methods of anything, so they go there too, as in spark's own profiles.
 */
static struct pm_spark_frame describe(struct pm_arena *arena, const struct pm_view_frame *frame) {
  struct pm_spark_frame shown = {.class_name = "native", .desc = ""};
  shown.method = pm__text_clean(arena, frame->function);
  if (frame->kind == PM_FRAME_PYTHON) {
    const char *module = pm__text_clean(arena, frame->module);
    shown.class_name = pm__text_format(arena, "[Python] %s", module);
    shown.desc = pm__text_clean(arena, frame->file);
    shown.line = pm__spark_int32(frame->line);
  } else if (frame->kind == PM_FRAME_NATIVE) {
    shown.class_name = pm__text_clean(arena, frame->module);
  }
  return shown;
}

static const struct pm_spark_frame *describe_all(struct pm_arena *arena,
                                                 const struct pm_view *view) {
  struct pm_spark_frame *frames = pm__arena_take(arena, view->frame_count, sizeof(*frames));
  for (uint32_t i = 0; frames != NULL && i < view->frame_count; i++) {
    frames[i] = describe(arena, &view->frames[i]);
  }
  return frames;
}

/* One thread on its way to the file. The file has callees first: tree order reversed. */
struct thread_work {
  struct pm_spark *spark;
  struct pm_arena arena;
  struct pm_cut_tree tree;
  Spark__StackTraceNode *nodes, **order;
  double *times; /* by node and window, then the thread's own */
  int32_t *refs; /* children of node i: refs[first[i]] to refs[first[i + 1]] */
  uint32_t *first;
};

static bool take_room(struct thread_work *work) {
  size_t count = work->tree.count, windows = work->spark->view->window_count;
  work->nodes = pm__arena_take(&work->arena, count, sizeof(*work->nodes));
  work->order = pm__arena_take(&work->arena, count, sizeof(Spark__StackTraceNode *));
  work->times = pm__arena_take(&work->arena, (count + 1) * windows, sizeof(double));
  work->refs = pm__arena_take(&work->arena, count, sizeof(int32_t));
  work->first = pm__arena_take(&work->arena, count + 3, sizeof(uint32_t));
  return !work->arena.failed;
}

/* Roots are the children of a node behind the last one. */
static uint32_t parent_of(const struct thread_work *work, uint32_t node) {
  uint32_t parent = work->tree.nodes[node].parent;
  return parent == PM_CUT_NONE ? work->tree.count : parent;
}

static int32_t place_of(const struct thread_work *work, uint32_t node) {
  return (int32_t)(work->tree.count - 1 - node);
}

/* A counting sort by parent; counts start two places up, so filling leaves first[] right. */
static void link_children(struct thread_work *work) {
  uint32_t count = work->tree.count;
  for (uint32_t i = 0; i < count; i++) {
    work->first[parent_of(work, i) + 2]++;
  }
  for (uint32_t i = 2; i < count + 3; i++) {
    work->first[i] += work->first[i - 1];
  }
  for (uint32_t i = 0; i < count; i++) {
    work->refs[work->first[parent_of(work, i) + 1]++] = place_of(work, i);
  }
}

/* Inclusive ms by window. The thread's own are the sum over its roots, as the viewer wants. */
static void fill_times(struct thread_work *work) {
  size_t windows = work->spark->view->window_count, count = work->tree.count;
  for (size_t i = 0; i < count * windows; i++) {
    work->times[i] = (double)work->tree.ns[i] / 1e6;
  }
  double *own = work->times + count * windows;
  for (uint32_t i = work->first[count]; i < work->first[count + 1]; i++) {
    size_t root = count - 1 - (size_t)work->refs[i];
    for (size_t w = 0; w < windows; w++) {
      own[w] += work->times[root * windows + w];
    }
  }
}

static struct pm_spark_frame frame_of(struct thread_work *work, const struct pm_cut_node *node) {
  if (node->frame != PM_CUT_NONE) {
    return work->spark->frames[node->frame];
  }
  const char *name = pm__text_format(&work->arena, "[truncated %u]", node->removed);
  return (struct pm_spark_frame){.class_name = "native", .method = name, .desc = ""};
}

static void fill_node(struct thread_work *work, uint32_t index) {
  size_t windows = work->spark->view->window_count;
  struct pm_spark_frame frame = frame_of(work, &work->tree.nodes[index]);
  Spark__StackTraceNode *node = &work->nodes[index];
  spark__stack_trace_node__init(node);
  node->class_name = pm__proto_text(frame.class_name);
  node->method_name = pm__proto_text(frame.method);
  node->method_desc = pm__proto_text(frame.desc);
  node->line_number = frame.line;
  node->n_times = windows;
  node->times = work->times + index * windows;
  node->n_children_refs = work->first[index + 1] - work->first[index];
  node->children_refs = work->refs + work->first[index];
  work->order[place_of(work, index)] = node;
}

static void put_thread(struct thread_work *work, const char *name) {
  uint32_t count = work->tree.count;
  Spark__ThreadNode thread = SPARK__THREAD_NODE__INIT, *threads = &thread;
  thread.name = pm__proto_text(name);
  thread.n_children = count;
  thread.children = work->order;
  thread.n_times = work->spark->view->window_count;
  thread.times = work->times + (size_t)count * thread.n_times;
  thread.n_children_refs = work->first[count + 1] - work->first[count];
  thread.children_refs = work->refs + work->first[count];
  Spark__SamplerData data = SPARK__SAMPLER_DATA__INIT;
  data.n_threads = 1;
  data.threads = &threads;
  pm__proto_put(&work->spark->stream, &data.base);
}

static void encode_thread(struct pm_spark *spark, uint32_t index) {
  const struct pm_view_thread *thread = &spark->view->threads[index];
  struct thread_work work = {.spark = spark};
  if (pm__cut_tree(&work.arena, spark->view, thread, &work.tree) == 0 && take_room(&work)) {
    link_children(&work);
    fill_times(&work);
    for (uint32_t i = 0; i < work.tree.count; i++) {
      fill_node(&work, i);
    }
    put_thread(&work, spark->thread_names[index]);
  }
  spark->arena.failed |= work.arena.failed;
  pm__arena_free(&work.arena);
}

static void encode(struct pm_spark *spark) {
  spark->frames = describe_all(&spark->arena, spark->view);
  spark->thread_names = pm__label_threads(&spark->arena, spark->view);
  if (spark->arena.failed) {
    return;
  }
  pm__spark_metadata(spark);
  pm__spark_windows(spark);
  pm__spark_sources(spark);
  for (uint32_t i = 0; i < spark->view->thread_count && !spark->arena.failed; i++) {
    encode_thread(spark, i);
  }
}

int pm__export_spark(const struct pm_view *view, pm_export_sink sink, void *context) {
  struct pm_spark spark = {.view = view};
  pm__stream_open(&spark.stream, sink, context);
  encode(&spark);
  int result = spark.arena.failed ? PYROMETER_E_MEMORY : pm__stream_close(&spark.stream);
  pm__arena_free(&spark.arena);
  return result;
}
