/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c: a thread's call tree, cut to a depth; see cut.h.
 *
 * A node is taken out when it stands below the top half and more frames hang below
 * it than the bottom half shows. What is taken out below one node of the top half
 * becomes one cut node with the same total. Below that hang the bottom halves, and
 * each function that had self time in the cut, equal siblings merged: so self time
 * stays with its function even when its caller is gone.
 */
#include "export/cut.h"

#include <string.h>

#include "pyrometer.h"

enum {
  TOP = PM_CUT_DEPTH / 2,          /* nodes kept above a cut */
  BOTTOM = PM_CUT_DEPTH - TOP - 1, /* nodes kept below it */
};

/* While cutting. Arrays without a note are indexed by the thread's nodes. */
struct cutter {
  const struct pm_view_node *nodes;
  const uint64_t *ns;
  uint32_t count, windows;
  uint32_t *parent, *height; /* height: frames below the node on its deepest path */
  uint32_t *target;          /* the node of the new tree that callees go below */
  bool *cut;
  uint64_t *self; /* by window */

  struct pm_cut_node *out;
  uint64_t *out_ns;
  uint32_t out_count;
  uint32_t *slots; /* hash table over (parent, frame): index into out + 1, 0 = free */
  uint32_t mask;
};

static bool find_heights(struct cutter *cutter) {
  bool too_deep = false;
  for (uint32_t i = cutter->count; i-- > 0;) {
    for (uint32_t child = i + 1; child < i + cutter->nodes[i].subtree;
         child += cutter->nodes[child].subtree) {
      cutter->parent[child] = i;
      if (cutter->height[i] <= cutter->height[child]) {
        cutter->height[i] = cutter->height[child] + 1;
      }
    }
    too_deep |= cutter->nodes[i].depth >= PM_CUT_DEPTH;
  }
  return too_deep;
}

static uint32_t slot_of(const struct cutter *cutter, uint32_t parent, uint32_t frame) {
  uint64_t hash = (((uint64_t)parent << 32) | frame) * UINT64_C(0x9E3779B97F4A7C15);
  return (uint32_t)(hash >> 32) & cutter->mask;
}

/* The child of `parent` for `frame`, made when it is new. */
static uint32_t child_of(struct cutter *cutter, uint32_t parent, uint32_t frame) {
  uint32_t slot = slot_of(cutter, parent, frame);
  for (; cutter->slots[slot] != 0; slot = (slot + 1) & cutter->mask) {
    const struct pm_cut_node *node = &cutter->out[cutter->slots[slot] - 1];
    if (node->parent == parent && node->frame == frame) {
      return cutter->slots[slot] - 1;
    }
  }
  uint32_t index = cutter->out_count++;
  cutter->out[index].parent = parent;
  cutter->out[index].frame = frame;
  cutter->slots[slot] = index + 1;
  return index;
}

static void add_times(struct cutter *cutter, uint32_t index, const uint64_t *ns) {
  for (uint32_t w = 0; w < cutter->windows; w++) {
    cutter->out_ns[(size_t)index * cutter->windows + w] += ns[w];
  }
}

/* Self time of a node by window, into cutter->self; false when there is none. */
static bool find_self(struct cutter *cutter, uint32_t i) {
  const struct pm_view_node *node = &cutter->nodes[i];
  bool any = false;
  for (uint32_t w = 0; w < cutter->windows; w++) {
    uint64_t total = cutter->ns[(size_t)i * cutter->windows + w], below = 0;
    for (uint32_t child = i + 1; child < i + node->subtree; child += cutter->nodes[child].subtree) {
      below += cutter->ns[(size_t)child * cutter->windows + w];
    }
    cutter->self[w] = below < total ? total - below : 0;
    any |= cutter->self[w] > 0;
  }
  return any;
}

static bool is_cut(const struct cutter *cutter, uint32_t i) {
  uint32_t depth = cutter->nodes[i].depth;
  if (depth == TOP) {
    return depth + cutter->height[i] >= PM_CUT_DEPTH;
  }
  return depth > TOP && cutter->cut[cutter->parent[i]] && cutter->height[i] >= BOTTOM;
}

static void take_out(struct cutter *cutter, uint32_t i, uint32_t above) {
  if (cutter->nodes[i].depth == TOP) {
    above = child_of(cutter, above, PM_CUT_NONE);
    add_times(cutter, above, cutter->ns + (size_t)i * cutter->windows);
    uint32_t removed = cutter->height[i] - BOTTOM + 1;
    if (cutter->out[above].removed < removed) {
      cutter->out[above].removed = removed;
    }
  }
  cutter->target[i] = above;
  if (find_self(cutter, i)) {
    add_times(cutter, child_of(cutter, above, cutter->nodes[i].frame), cutter->self);
  }
}

static void cut_node(struct cutter *cutter, uint32_t i) {
  uint32_t above = PM_CUT_NONE;
  if (cutter->parent[i] != PM_CUT_NONE) {
    above = cutter->target[cutter->parent[i]];
  }
  cutter->cut[i] = is_cut(cutter, i);
  if (cutter->cut[i]) {
    take_out(cutter, i, above);
    return;
  }
  cutter->target[i] = child_of(cutter, above, cutter->nodes[i].frame);
  add_times(cutter, cutter->target[i], cutter->ns + (size_t)i * cutter->windows);
}

/* Room for the new tree: a cut adds one node, but takes at least two out. */
static bool take_room(struct pm_arena *arena, struct cutter *cutter) {
  size_t room = (size_t)cutter->count + cutter->count / 2 + 1;
  size_t slots = 1024;
  while (slots < 2 * room) {
    slots *= 2;
  }
  cutter->mask = (uint32_t)(slots - 1);
  cutter->target = pm__arena_take(arena, cutter->count, sizeof(uint32_t));
  cutter->cut = pm__arena_take(arena, cutter->count, sizeof(bool));
  cutter->self = pm__arena_take(arena, cutter->windows, sizeof(uint64_t));
  cutter->out = pm__arena_take(arena, room, sizeof(struct pm_cut_node));
  cutter->out_ns = pm__arena_take(arena, room * cutter->windows, sizeof(uint64_t));
  cutter->slots = pm__arena_take(arena, slots, sizeof(uint32_t));
  return !arena->failed;
}

static int cut_tree(struct pm_arena *arena, struct cutter *cutter, struct pm_cut_tree *tree) {
  if (!take_room(arena, cutter)) {
    return PYROMETER_E_MEMORY;
  }
  for (uint32_t i = 0; i < cutter->count; i++) {
    cut_node(cutter, i);
  }
  *tree = (struct pm_cut_tree){cutter->out_count, cutter->out, cutter->out_ns};
  return 0;
}

static int copy_tree(struct pm_arena *arena, struct cutter *cutter, struct pm_cut_tree *tree) {
  struct pm_cut_node *nodes = pm__arena_take(arena, cutter->count, sizeof(*nodes));
  if (nodes == NULL) {
    return PYROMETER_E_MEMORY;
  }
  for (uint32_t i = 0; i < cutter->count; i++) {
    nodes[i].parent = cutter->parent[i];
    nodes[i].frame = cutter->nodes[i].frame;
  }
  *tree = (struct pm_cut_tree){cutter->count, nodes, cutter->ns};
  return 0;
}

int pm__cut_tree(struct pm_arena *arena, const struct pm_view *view,
                 const struct pm_view_thread *thread, struct pm_cut_tree *tree) {
  struct cutter cutter = {.count = thread->node_count};
  cutter.windows = view->window_count;
  cutter.nodes = view->nodes + thread->first_node;
  cutter.ns = view->total_by_window + (size_t)thread->first_node * view->window_count;
  cutter.parent = pm__arena_take(arena, cutter.count, sizeof(uint32_t));
  cutter.height = pm__arena_take(arena, cutter.count, sizeof(uint32_t));
  if (cutter.parent == NULL || cutter.height == NULL) {
    return PYROMETER_E_MEMORY;
  }
  memset(cutter.parent, 0xFF, cutter.count * sizeof(uint32_t)); /* PM_CUT_NONE */
  return find_heights(&cutter) ? cut_tree(arena, &cutter, tree) : copy_tree(arena, &cutter, tree);
}
