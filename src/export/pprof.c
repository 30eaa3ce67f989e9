/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof.c: .pb.gz, the profile.proto format of `go tool pprof` and Pyroscope.
 *
 * cpu/nanoseconds is what was measured. samples/count is an estimate by stack and
 * exact by thread: a view keeps CPU by stack, samples by thread. Each sampled stack
 * gets the one sample it must have had, the thread's others are spread by CPU, and
 * (unsampled) CPU has none.
 *
 * A function's name leaves out the "(file:line)" of the display name: pprof has
 * fields for both, and a name that moves with each edit could not be compared.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "export/gzip.h"
#include "export/label.h"
#include "export/proto.h"
#include "export/strings.h"
#include "pprof.pb-c.h"
#include "pyrometer.h"

struct encoder {
  const struct pm_view *view;
  struct pm_arena arena;
  struct pm_strings strings;
  struct pm_stream stream;
};

static int64_t text(struct encoder *encoder, const char *string) {
  return pm__strings_index(&encoder->strings, string);
}

static Pprof__ValueType value_type(struct encoder *encoder, const char *type, const char *unit) {
  Pprof__ValueType value = PPROF__VALUE_TYPE__INIT;
  value.type = text(encoder, type);
  value.unit = text(encoder, unit);
  return value;
}

/* pprof counts in int64 ns, which end in the year 2262; 0 means not known. */
static int64_t nanos(int64_t ms) {
  int64_t ns;
  return __builtin_mul_overflow(ms, INT64_C(1000000), &ns) ? 0 : ns;
}

static void put_header(struct encoder *encoder) {
  const struct pm_view *view = encoder->view;
  Pprof__ValueType samples = value_type(encoder, "samples", "count");
  Pprof__ValueType cpu = value_type(encoder, "cpu", "nanoseconds");
  Pprof__ValueType *types[] = {&samples, &cpu};
  int64_t comment = text(encoder, pm__label_summary(&encoder->arena, view));
  Pprof__Profile profile = PPROF__PROFILE__INIT;
  profile.n_sample_type = PM_COUNT_OF(types);
  profile.sample_type = types;
  profile.default_sample_type = cpu.type;
  profile.period_type = &cpu;
  profile.period = view->rate_hz == 0 ? 0 : 1000000000 / view->rate_hz;
  profile.time_nanos = nanos(view->start_ms);
  profile.duration_nanos = nanos(view->end_ms - view->start_ms);
  profile.n_comment = 1;
  profile.comment = &comment;
  pm__proto_put(&encoder->stream, &profile.base);
}

static void put_mapping(struct encoder *encoder, uint32_t index) {
  const struct pm_view_object *object = &encoder->view->objects[index];
  Pprof__Mapping mapping = PPROF__MAPPING__INIT, *mappings = &mapping;
  mapping.id = (uint64_t)index + 1;
  mapping.memory_start = object->text_lo;
  mapping.memory_limit = object->text_hi;
  mapping.filename = text(encoder, object->path);
  mapping.build_id = text(encoder, object->build_id);
  mapping.has_functions = 1;
  Pprof__Profile profile = PPROF__PROFILE__INIT;
  profile.n_mapping = 1;
  profile.mapping = &mappings;
  pm__proto_put(&encoder->stream, &profile.base);
}

static const char *function_name(struct encoder *encoder, const struct pm_view_frame *frame) {
  bool bare = frame->module == NULL || *frame->module == 0;
  if (frame->kind == PM_FRAME_PYTHON && !bare) {
    return pm__text_format(&encoder->arena, "%s.%s", frame->module, frame->function);
  }
  return frame->kind == PM_FRAME_PYTHON ? frame->function : frame->name;
}

/*
 * A system_name that differs from the name tells pprof that it is demangled already.
 * An object is no source file: for native frames the mapping names it.
 */
static Pprof__Function function_of(struct encoder *encoder, uint32_t index) {
  const struct pm_view_frame *frame = &encoder->view->frames[index];
  Pprof__Function function = PPROF__FUNCTION__INIT;
  function.id = (uint64_t)index + 1;
  function.name = text(encoder, function_name(encoder, frame));
  function.system_name = text(encoder, frame->function);
  if (frame->kind == PM_FRAME_PYTHON) {
    function.filename = text(encoder, frame->file);
    function.start_line = frame->line;
  }
  return function;
}

/* Functions and locations go in pairs: both have the frame's index + 1 for an id. */
static void put_frame(struct encoder *encoder, uint32_t index) {
  const struct pm_view_frame *frame = &encoder->view->frames[index];
  Pprof__Function function = function_of(encoder, index), *functions = &function;
  Pprof__Line line = PPROF__LINE__INIT, *lines = &line;
  line.function_id = function.id;
  Pprof__Location location = PPROF__LOCATION__INIT, *locations = &location;
  location.id = function.id;
  location.n_line = 1;
  location.line = &lines;
  if (frame->kind == PM_FRAME_NATIVE && frame->object < encoder->view->object_count) {
    location.mapping_id = (uint64_t)frame->object + 1;
    location.address = encoder->view->objects[frame->object].bias + frame->address;
  }
  Pprof__Profile profile = PPROF__PROFILE__INIT;
  profile.n_function = 1;
  profile.function = &functions;
  profile.n_location = 1;
  profile.location = &locations;
  pm__proto_put(&encoder->stream, &profile.base);
}

/* How a thread's samples are spread over its stacks. */
struct spread {
  double extra;     /* samples beyond the one of each stack */
  double total, at; /* ns of CPU: all, given out so far */
};

static bool was_sampled(const struct pm_view *view, const struct pm_view_node *node) {
  const struct pm_view_frame *frame = &view->frames[node->frame];
  bool unsampled = frame->kind == PM_FRAME_PSEUDO && strcmp(frame->function, "(unsampled)") == 0;
  return node->self_ns > 0 && !unsampled;
}

static struct spread start_spread(const struct pm_view *view, const struct pm_view_thread *thread) {
  struct spread spread = {0};
  uint64_t stacks = 0;
  for (uint32_t i = 0; i < thread->node_count; i++) {
    const struct pm_view_node *node = &view->nodes[thread->first_node + i];
    if (was_sampled(view, node)) {
      spread.total += (double)node->self_ns;
      stacks++;
    }
  }
  spread.extra = thread->samples > stacks ? (double)(thread->samples - stacks) : 0;
  return spread;
}

/* Differences of a rounded running sum, so that nothing is lost to rounding. */
static int64_t samples_of(struct spread *spread, const struct pm_view_node *node) {
  int64_t before = (int64_t)(spread->at / spread->total * spread->extra);
  spread->at += (double)node->self_ns;
  return 1 + (int64_t)(spread->at / spread->total * spread->extra) - before;
}

/* One thread's samples; `path` is filled from its end, so that the leaf comes first. */
struct thread_work {
  struct encoder *encoder;
  const struct pm_view_thread *thread;
  struct spread spread;
  Pprof__Label name, tid;
  uint64_t *path;
  uint32_t deepest;
};

static void put_sample(struct thread_work *work, const struct pm_view_node *node) {
  int64_t values[2] = {0, (int64_t)node->self_ns};
  if (was_sampled(work->encoder->view, node)) {
    values[0] = samples_of(&work->spread, node);
  }
  Pprof__Label *labels[] = {&work->name, &work->tid};
  Pprof__Sample sample = PPROF__SAMPLE__INIT, *samples = &sample;
  sample.n_location_id = (size_t)node->depth + 1;
  sample.location_id = work->path + (work->deepest - node->depth);
  sample.n_value = PM_COUNT_OF(values);
  sample.value = values;
  sample.n_label = PM_COUNT_OF(labels);
  sample.label = labels;
  Pprof__Profile profile = PPROF__PROFILE__INIT;
  profile.n_sample = 1;
  profile.sample = &samples;
  pm__proto_put(&work->encoder->stream, &profile.base);
}

static void put_nodes(struct thread_work *work) {
  const struct pm_view_node *nodes = work->encoder->view->nodes + work->thread->first_node;
  for (uint32_t i = 0; i < work->thread->node_count; i++) {
    work->path[work->deepest - nodes[i].depth] = (uint64_t)nodes[i].frame + 1;
    if (nodes[i].self_ns > 0) {
      put_sample(work, &nodes[i]);
    }
  }
}

static void put_thread(struct encoder *encoder, const struct pm_view_thread *thread) {
  struct thread_work work = {.encoder = encoder, .thread = thread};
  work.spread = start_spread(encoder->view, thread);
  pprof__label__init(&work.name);
  work.name.key = text(encoder, "thread");
  work.name.str = text(encoder, thread->name);
  pprof__label__init(&work.tid);
  work.tid.key = text(encoder, "tid");
  work.tid.num = thread->tid;
  for (uint32_t i = 0; i < thread->node_count; i++) {
    uint32_t depth = encoder->view->nodes[thread->first_node + i].depth;
    work.deepest = depth > work.deepest ? depth : work.deepest;
  }
  work.path = calloc((size_t)work.deepest + 1, sizeof(uint64_t));
  if (work.path == NULL) {
    encoder->arena.failed = true;
    return;
  }
  put_nodes(&work);
  free(work.path);
}

/* Last, when all texts are known: readers look them up when they have read all. */
static void put_strings(struct encoder *encoder) {
  Pprof__Profile profile = PPROF__PROFILE__INIT;
  profile.n_string_table = encoder->strings.count;
  profile.string_table = (char **)encoder->strings.texts;
  pm__proto_put(&encoder->stream, &profile.base);
}

static void encode(struct encoder *encoder) {
  const struct pm_view *view = encoder->view;
  put_header(encoder);
  for (uint32_t i = 0; i < view->object_count; i++) {
    put_mapping(encoder, i);
  }
  for (uint32_t i = 0; i < view->frame_count; i++) {
    put_frame(encoder, i);
  }
  for (uint32_t i = 0; i < view->thread_count; i++) {
    put_thread(encoder, &view->threads[i]);
  }
  put_strings(encoder);
}

int pm__export_pprof(const struct pm_view *view, pm_export_sink sink, void *context) {
  struct encoder encoder = {.view = view};
  encoder.strings.arena = &encoder.arena;
  struct pm_gzip gzip;
  int result = pm__gzip_open(&gzip, sink, context);
  if (result != 0) {
    return result;
  }
  pm__stream_open(&encoder.stream, pm__gzip_put, &gzip);
  encode(&encoder);
  result = encoder.arena.failed ? PYROMETER_E_MEMORY : pm__stream_close(&encoder.stream);
  int closed = pm__gzip_close(&gzip, result != 0);
  pm__arena_free(&encoder.arena);
  return result != 0 ? result : closed;
}
