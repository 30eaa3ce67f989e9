/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the live tree to the frozen view: names first, then one pre-order array
 * of nodes in which siblings of one name are one node, heaviest first.
 */
#include <errno.h>
#include <math.h>
#include <pyrometer.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "profile/merge.h"
#include "profile/namer.h"
#include "profile/profile.h"
#include "python/python.h"

/* What a view is made of; `view` is first, so a view's address is its owner's. */
struct owned_view {
  struct pm_view view;
  struct pm_arena arena;
  struct pm_view_frame *frames;
  struct pm_view_object *objects;
  struct pm_view_thread *threads;
  struct pm_view_node *nodes;
  struct pm_view_window *windows;
  uint64_t *total_by_window;
};

/* A live node beside the view frame that its key is named by. */
struct named {
  uint32_t frame;
  uint32_t node;
};

struct builder {
  const struct pm_profile *profile;
  const struct pm_tree *tree;
  struct pm_namer namer;
  struct owned_view *out;
  uint64_t *live_total;  /* inclusive ns by live node */
  struct named *scratch; /* a stack of groups under way */
  uint32_t scratch_used, scratch_room;
  uint32_t node_count;
  uint32_t *parents; /* by view node; UINT32_MAX at a thread's roots */
  uint32_t windows;
};

static bool sum_live_tree(struct builder *b) {
  b->live_total = calloc(b->tree->count, sizeof *b->live_total);
  if (b->live_total == NULL) return false;
  /* A node is always younger than its parent. */
  for (uint32_t i = b->tree->count; i-- > 0;) {
    uint32_t parent = b->tree->nodes[i].parent;
    b->live_total[i] += pm__tree_self(b->tree, i);
    if (parent != PM_TREE_NONE) b->live_total[parent] += b->live_total[i];
  }
  return true;
}

/* Pushes the children of a live node that used CPU. */
static bool push_children(struct builder *b, uint32_t node) {
  uint32_t child = b->tree->nodes[node].first_child;
  for (; child != PM_TREE_NONE; child = b->tree->nodes[child].next_sibling) {
    if (b->live_total[child] == 0) continue;
    if (b->scratch_used == b->scratch_room) {
      uint32_t room = b->scratch_room == 0 ? 1024 : b->scratch_room * 2;
      struct named *bigger = realloc(b->scratch, sizeof *bigger * room);
      if (bigger == NULL) return false;
      b->scratch = bigger;
      b->scratch_room = room;
    }
    uint32_t frame = pm__namer_frame(&b->namer, b->tree->nodes[child].frame);
    if (frame == UINT32_MAX) return false;
    b->scratch[b->scratch_used++] = (struct named){.frame = frame, .node = child};
  }
  return true;
}

static int by_frame(const void *left, const void *right) {
  const struct named *a = left, *b = right;
  return a->frame != b->frame ? (a->frame < b->frame ? -1 : 1)
                              : (a->node > b->node) - (a->node < b->node);
}

/* Siblings of one name: [first, first + count) of scratch. */
struct group {
  uint32_t first, count;
  uint64_t total;
};

static int by_weight(const void *left, const void *right) {
  const struct group *a = left, *b = right;
  return a->total != b->total ? (a->total > b->total ? -1 : 1)
                              : (a->first > b->first) - (a->first < b->first);
}

static uint32_t make_groups(const struct builder *b, uint32_t from, uint32_t to,
                            struct group *groups) {
  uint32_t count = 0;
  for (uint32_t i = from; i < to; i++) {
    if (i == from || b->scratch[i].frame != b->scratch[i - 1].frame) {
      groups[count++] = (struct group){.first = i};
    }
    groups[count - 1].count++;
    groups[count - 1].total += b->live_total[b->scratch[i].node];
  }
  return count;
}

static void fill_node(struct builder *b, uint32_t index, const struct group *group,
                      uint32_t parent) {
  struct pm_view_node *node = &b->out->nodes[index];
  node->frame = b->scratch[group->first].frame;
  node->depth = parent == UINT32_MAX ? 0 : b->out->nodes[parent].depth + 1;
  node->total_ns = group->total;
  b->parents[index] = parent;
  uint64_t *windows = &b->out->total_by_window[(size_t)index * b->windows];
  for (uint32_t i = group->first; i < group->first + group->count; i++) {
    uint32_t time = b->tree->nodes[b->scratch[i].node].newest;
    for (; time != PM_TREE_NONE; time = b->tree->times[time].older) {
      windows[b->tree->times[time].window] += b->tree->times[time].ns;
      node->self_ns += b->tree->times[time].ns;
    }
  }
}

static bool build_level(struct builder *b, uint32_t from, uint32_t parent);

static bool build_group(struct builder *b, const struct group *group, uint32_t parent) {
  uint32_t index = b->node_count++;
  fill_node(b, index, group, parent);
  uint32_t from = b->scratch_used;
  for (uint32_t i = group->first; i < group->first + group->count; i++) {
    if (!push_children(b, b->scratch[i].node)) return false;
  }
  if (!build_level(b, from, index)) return false;
  b->out->nodes[index].subtree = b->node_count - index;
  return true;
}

/* Builds the nodes for scratch[from ..], children of view node `parent`, and pops them. */
static bool build_level(struct builder *b, uint32_t from, uint32_t parent) {
  uint32_t to = b->scratch_used;
  if (to == from) return true;
  qsort(b->scratch + from, to - from, sizeof *b->scratch, by_frame);
  struct group *groups = malloc(sizeof *groups * (to - from));
  if (groups == NULL) return false;
  uint32_t count = make_groups(b, from, to, groups);
  qsort(groups, count, sizeof *groups, by_weight);
  bool built = true;
  for (uint32_t i = 0; built && i < count; i++) built = build_group(b, &groups[i], parent);
  free(groups);
  b->scratch_used = from;
  return built;
}

static bool build_thread(struct builder *b, const struct pm_profile_thread *live,
                         struct pm_view_thread *thread) {
  *thread = (struct pm_view_thread){
      .name = pm__text_copy(&b->out->arena, pm__text_clean(&b->out->arena, live->name)),
      .tid = live->tid,
      .main = live->main,
      .cpu_ns = live->cpu_ns,
      .sampled_ns = live->sampled_ns,
      .samples = live->samples,
      .reason = pm__profile_reason(live),
      .first_node = b->node_count,
  };
  if (!push_children(b, live->root) || !build_level(b, 0, UINT32_MAX)) return false;
  thread->node_count = b->node_count - thread->first_node;
  return true;
}

static int by_sampled(const void *left, const void *right) {
  const struct pm_profile_thread *a = *(const struct pm_profile_thread *const *)left;
  const struct pm_profile_thread *b = *(const struct pm_profile_thread *const *)right;
  if (a->sampled_ns != b->sampled_ns) return a->sampled_ns > b->sampled_ns ? -1 : 1;
  if (a->cpu_ns != b->cpu_ns) return a->cpu_ns > b->cpu_ns ? -1 : 1;
  return (a > b) - (a < b);
}

/* Threads that used CPU, most first. */
static bool build_threads(struct builder *b) {
  uint32_t count = 0;
  const struct pm_profile_thread **order = malloc(sizeof(*order) * b->profile->thread_count);
  if (order == NULL) return false;
  for (uint32_t i = 0; i < b->profile->thread_count; i++) {
    const struct pm_profile_thread *thread = &b->profile->threads[i];
    if (thread->cpu_ns > 0 || thread->sampled_ns > 0) order[count++] = thread;
  }
  qsort(order, count, sizeof *order, by_sampled);
  bool built = true;
  for (uint32_t i = 0; built && i < count; i++) {
    built = build_thread(b, order[i], &b->out->threads[i]);
  }
  free(order);
  b->out->view.thread_count = count;
  return built;
}

static void sum_windows(struct builder *b) {
  uint64_t *totals = b->out->total_by_window;
  for (uint32_t i = b->node_count; i-- > 0;) {
    if (b->parents[i] == UINT32_MAX) continue;
    for (uint32_t w = 0; w < b->windows; w++) {
      totals[(size_t)b->parents[i] * b->windows + w] += totals[(size_t)i * b->windows + w];
    }
  }
}

/* The stack of frames above the node that sum_functions visits. */
struct path {
  uint32_t depth;
  struct {
    uint32_t frame;
    uint32_t owner; /* whose own the CPU is that stops here; see view.h */
    bool counted;   /* the outermost of this frame on the path: total counts here */
  } at[PM_MERGE_FRAMES_MAX + 8];
};

static uint32_t owner_of(const struct builder *b, const struct path *path, uint32_t frame) {
  if (!b->namer.frames[frame].runtime || path->depth == 0) return frame;
  uint32_t above = path->at[path->depth - 1].owner;
  return b->namer.frames[above].kind == PM_FRAME_PYTHON ? above : frame;
}

static void leave_to(struct path *path, uint32_t depth, uint8_t *on_path) {
  while (path->depth > depth) {
    path->depth--;
    if (path->at[path->depth].counted) on_path[path->at[path->depth].frame] = 0;
  }
}

static void enter_node(struct builder *b, struct path *path, const struct pm_view_node *node,
                       uint8_t *on_path) {
  uint32_t owner = owner_of(b, path, node->frame);
  bool outermost = !on_path[node->frame];
  if (outermost) b->namer.frames[node->frame].total_ns += node->total_ns;
  b->namer.frames[owner].self_ns += node->self_ns;
  path->at[path->depth].frame = node->frame;
  path->at[path->depth].owner = owner;
  path->at[path->depth].counted = outermost;
  path->depth++;
  on_path[node->frame] = 1;
}

/* Self and total by function; on a recursive path the outermost call counts. */
static bool sum_functions(struct builder *b) {
  uint8_t *on_path = calloc(b->namer.frame_count + 1, 1);
  struct path path = {.depth = 0};
  if (on_path == NULL) return false;
  for (uint32_t i = 0; i < b->node_count; i++) {
    const struct pm_view_node *node = &b->out->nodes[i];
    leave_to(&path, node->depth, on_path);
    enter_node(b, &path, node, on_path);
  }
  free(on_path);
  return true;
}

/*
 * Where samples have the frames of donors, shares are known as well as the donors tell. Those of
 * one burst resemble each other, so that one more of them tells less than another burst.
 */
static double donors_told(const struct pm_profile *profile) {
  double seen = (double)profile->seen, bursts = (double)profile->events.bursts + 1.0;
  return seen > bursts ? bursts + (seen - bursts) * 0.3 : seen;
}

/* The normal approximation, with one donor more so that nothing is certain. */
static void fill_errors(struct builder *b) {
  const struct pm_profile *profile = b->profile;
  if (profile->estimated == 0 || profile->sampled_ns == 0) return;
  double total = (double)profile->sampled_ns, told = donors_told(profile) + 1.0;
  for (uint32_t i = 0; i < b->namer.frame_count; i++) {
    struct pm_view_frame *frame = &b->namer.frames[i];
    double share = (double)frame->self_ns / total;
    if (frame->kind != PM_FRAME_PYTHON || share <= 0) continue;
    double variance = (share < 1.0 ? share * (1.0 - share) : 0.0) + 1.0 / told;
    frame->self_error_ns = (uint64_t)(1.96 * sqrt(variance / told) * total);
  }
}

static void fill_windows(const struct pm_profile *profile, struct pm_view_window *windows) {
  for (uint32_t i = 0; i < profile->window_count; i++) {
    const struct pm_profile_window *live = &profile->windows[i];
    bool last = i + 1 == profile->window_count;
    windows[i] = (struct pm_view_window){
        .id = (int32_t)(profile->start_ms / 60000u + i),
        .start_ms = (int64_t)live->start_ms,
        .end_ms = (int64_t)(last ? profile->end_ms : profile->windows[i + 1].start_ms),
        .cpu_ns = live->cpu_ns,
    };
  }
}

static void fill_python(struct pm_view *view) {
  struct pm_python_facts facts = pm__python_facts();
  static const char *const states[] = {[PM_PYTHON_ABSENT] = "absent",
                                       [PM_PYTHON_NATIVE_ONLY] = "native-only",
                                       [PM_PYTHON_ATTRIBUTED] = "attributed"};
  view->python_version = facts.version;
  view->python_free_threaded = facts.free_threaded;
  view->python_state = states[facts.state];
  view->python_reason = facts.reason;
}

static const char *command_name(struct pm_arena *arena) {
  const char *name = program_invocation_short_name;
  return pm__text_copy(arena, pm__text_clean(arena, name == NULL ? "" : name));
}

static void fill_view(struct builder *b, json_t *diagnostics) {
  const struct pm_profile *profile = b->profile;
  struct owned_view *out = b->out;
  struct pm_view *view = &out->view;
  uint32_t threads = view->thread_count;
  *view = (struct pm_view){
      .version = pyrometer_version(),
      .pid = getpid(),
      .command = command_name(&out->arena),
      .start_ms = (int64_t)profile->start_ms,
      .end_ms = (int64_t)profile->end_ms,
      .seconds = (double)(profile->end_ns - profile->start_ns) / 1e9,
      .rate_hz = profile->rate_hz,
      .cpu_ns = profile->cpu_ns,
      .sampled_ns = profile->sampled_ns,
      .samples = profile->samples,
      .overhead_pct = pm__profile_overhead(profile),
      .events_share = pm__profile_events_share(profile),
      .frames = out->frames = b->namer.frames,
      .frame_count = b->namer.frame_count,
      .objects = out->objects = b->namer.objects,
      .object_count = b->namer.object_count,
      .threads = out->threads,
      .thread_count = threads,
      .nodes = out->nodes,
      .node_count = b->node_count,
      .windows = out->windows,
      .window_count = b->windows,
      .total_by_window = out->total_by_window,
      .diagnostics = diagnostics,
  };
  fill_python(view);
  fill_windows(profile, out->windows);
}

static bool allocate(struct builder *b) {
  size_t nodes = b->tree->count + 1u;
  struct owned_view *out = b->out;
  out->nodes = calloc(nodes, sizeof *out->nodes);
  out->threads = calloc(b->profile->thread_count, sizeof *out->threads);
  out->windows = calloc(b->windows, sizeof *out->windows);
  out->total_by_window = calloc(nodes * b->windows, sizeof *out->total_by_window);
  b->parents = calloc(nodes, sizeof *b->parents);
  return out->nodes != NULL && out->threads != NULL && out->windows != NULL &&
         out->total_by_window != NULL && b->parents != NULL;
}

static bool build(struct builder *b) {
  b->namer.truncated_most = b->profile->truncated_most;
  if (!allocate(b) || !sum_live_tree(b) || !build_threads(b)) return false;
  sum_windows(b);
  if (!sum_functions(b)) return false;
  fill_errors(b);
  pm__namer_add_calls(&b->namer, b->profile->calls_before, b->profile->codes_before,
                      pm__profile_events_share(b->profile));
  return !b->out->arena.failed;
}

struct pm_view *pm__profile_view(const struct pm_profile *profile, json_t *diagnostics) {
  struct owned_view *out = calloc(1, sizeof *out);
  if (out == NULL) return NULL;
  struct builder b = {
      .profile = profile, .tree = &profile->tree, .out = out, .windows = profile->window_count};
  bool built = pm__namer_init(&b.namer, &out->arena, profile->symbolizer) && build(&b);
  out->frames = b.namer.frames;
  out->objects = b.namer.objects;
  out->view.diagnostics = diagnostics;
  if (built) fill_view(&b, diagnostics);
  pm__namer_free(&b.namer);
  free(b.live_total);
  free(b.scratch);
  free(b.parents);
  if (built) return &out->view;
  pm__view_free(&out->view);
  return NULL;
}

void pm__view_free(struct pm_view *view) {
  if (view == NULL) return;
  struct owned_view *out = (struct owned_view *)(void *)view;
  json_decref(view->diagnostics);
  pm__arena_free(&out->arena);
  free(out->frames);
  free(out->objects);
  free(out->threads);
  free(out->nodes);
  free(out->windows);
  free(out->total_by_window);
  free(out);
}
