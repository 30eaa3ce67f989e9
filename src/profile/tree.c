/* SPDX-License-Identifier: Apache-2.0 */
/* The live call tree; see tree.h. */
#include "profile/tree.h"

#include <stdlib.h>

enum { FIRST_NODES = 1024, FIRST_SLOTS = 4096, FIRST_TIMES = 1024 };

static uint64_t hash_of(uint32_t parent, struct pm_frame_key frame) {
  uint64_t hash = parent * 0x9E3779B97F4A7C15u;
  hash = (hash ^ (frame.kind + ((uint64_t)frame.id << 2))) * 0xFF51AFD7ED558CCDu;
  hash = (hash ^ hash >> 29 ^ frame.value) * 0xC4CEB9FE1A85EC53u;
  return hash ^ hash >> 32;
}

static void clear_slots(struct pm_tree *tree) {
  for (uint32_t i = 0; i < tree->slot_count; i++) tree->slots[i] = PM_TREE_NONE;
}

bool pm__tree_init(struct pm_tree *tree) {
  *tree = (struct pm_tree){
      .room = FIRST_NODES,
      .slot_count = FIRST_SLOTS,
      .time_room = FIRST_TIMES,
      .time_free = PM_TREE_NONE,
      .nodes_full = PM_TREE_NODES_MAX,
      .times_full = PM_TREE_TIMES_MAX,
      .nodes_max = PM_TREE_NODES_MAX,
      .times_max = PM_TREE_TIMES_MAX,
  };
  tree->nodes = malloc(sizeof *tree->nodes * FIRST_NODES);
  tree->slots = malloc(sizeof *tree->slots * FIRST_SLOTS);
  tree->times = malloc(sizeof *tree->times * FIRST_TIMES);
  if (tree->nodes == NULL || tree->slots == NULL || tree->times == NULL) {
    pm__tree_free(tree);
    return false;
  }
  clear_slots(tree);
  return true;
}

void pm__tree_free(struct pm_tree *tree) {
  free(tree->nodes);
  free(tree->slots);
  free(tree->times);
  *tree = (struct pm_tree){0};
}

size_t pm__tree_bytes(const struct pm_tree *tree) {
  return tree->room * sizeof *tree->nodes + tree->slot_count * sizeof *tree->slots +
         tree->time_room * sizeof *tree->times;
}

/* The slot that holds the child, or the free one where it belongs. */
static uint32_t *find_slot(struct pm_tree *tree, uint32_t parent, struct pm_frame_key frame) {
  uint32_t mask = tree->slot_count - 1;
  for (uint32_t i = (uint32_t)hash_of(parent, frame) & mask;; i = (i + 1) & mask) {
    uint32_t node = tree->slots[i];
    if (node == PM_TREE_NONE || (tree->nodes[node].parent == parent &&
                                 pm__frame_key_equal(tree->nodes[node].frame, frame))) {
      return &tree->slots[i];
    }
  }
}

static void fill_slots(struct pm_tree *tree) {
  clear_slots(tree);
  for (uint32_t i = 0; i < tree->count; i++) {
    if (tree->nodes[i].parent != PM_TREE_NONE) {
      *find_slot(tree, tree->nodes[i].parent, tree->nodes[i].frame) = i;
    }
  }
}

static bool grow_slots(struct pm_tree *tree) {
  uint32_t *bigger = malloc(sizeof *bigger * tree->slot_count * 2);
  if (bigger == NULL) return false;
  free(tree->slots);
  tree->slots = bigger;
  tree->slot_count *= 2;
  fill_slots(tree);
  return true;
}

static uint32_t add_node(struct pm_tree *tree, uint32_t parent, struct pm_frame_key frame) {
  if (tree->count == tree->room) {
    struct pm_tree_node *bigger =
        realloc(tree->nodes, sizeof *tree->nodes * (size_t)tree->room * 2);
    if (bigger == NULL) return PM_TREE_NONE;
    tree->nodes = bigger;
    tree->room *= 2;
  }
  tree->nodes[tree->count] = (struct pm_tree_node){
      .frame = frame,
      .parent = parent,
      .first_child = PM_TREE_NONE,
      .next_sibling = PM_TREE_NONE,
      .newest = PM_TREE_NONE,
  };
  return tree->count++;
}

static void link_child(struct pm_tree *tree, uint32_t node) {
  struct pm_tree_node *parent = &tree->nodes[tree->nodes[node].parent];
  tree->nodes[node].next_sibling = parent->first_child;
  parent->first_child = node;
}

uint32_t pm__tree_add_root(struct pm_tree *tree) {
  return add_node(tree, PM_TREE_NONE, (struct pm_frame_key){0});
}

uint32_t pm__tree_child(struct pm_tree *tree, uint32_t parent, struct pm_frame_key frame) {
  uint32_t *slot = find_slot(tree, parent, frame);
  if (*slot != PM_TREE_NONE) return *slot;
  if ((uint64_t)tree->count * 2 >= tree->slot_count) {
    if (!grow_slots(tree)) return PM_TREE_NONE;
    slot = find_slot(tree, parent, frame);
  }
  uint32_t node = add_node(tree, parent, frame);
  if (node == PM_TREE_NONE) return PM_TREE_NONE;
  *slot = node;
  link_child(tree, node);
  return node;
}

/* Its fields are the caller's to fill. */
static uint32_t take_time(struct pm_tree *tree) {
  uint32_t time = tree->time_free;
  if (time != PM_TREE_NONE) {
    tree->time_free = tree->times[time].older;
    tree->times_free--;
    return time;
  }
  if (tree->time_count == tree->time_room) {
    struct pm_tree_time *bigger =
        realloc(tree->times, sizeof *tree->times * (size_t)tree->time_room * 2);
    if (bigger == NULL) return PM_TREE_NONE;
    tree->times = bigger;
    tree->time_room *= 2;
  }
  return tree->time_count++;
}

void pm__tree_release_time(struct pm_tree *tree, uint32_t time) {
  tree->times[time].older = tree->time_free;
  tree->time_free = time;
  tree->times_free++;
}

bool pm__tree_book(struct pm_tree *tree, uint32_t node, uint32_t window, uint64_t ns) {
  uint32_t newest = tree->nodes[node].newest;
  if (newest != PM_TREE_NONE && tree->times[newest].window == window) {
    tree->times[newest].ns += ns;
    return true;
  }
  uint32_t time = take_time(tree);
  if (time == PM_TREE_NONE) return false;
  tree->times[time] = (struct pm_tree_time){.ns = ns, .window = window, .older = newest};
  tree->nodes[node].newest = time;
  return true;
}

static void coalesce_node(struct pm_tree *tree, const struct pm_tree_node *node) {
  for (uint32_t i = node->newest; i != PM_TREE_NONE; i = tree->times[i].older) {
    struct pm_tree_time *time = &tree->times[i];
    uint32_t older = time->older;
    time->window /= 2;
    if (older == PM_TREE_NONE || tree->times[older].window / 2 != time->window) continue;
    time->ns += tree->times[older].ns;
    time->older = tree->times[older].older;
    pm__tree_release_time(tree, older);
  }
}

void pm__tree_coalesce(struct pm_tree *tree) {
  for (uint32_t i = 0; i < tree->count; i++) coalesce_node(tree, &tree->nodes[i]);
}

uint64_t pm__tree_self(const struct pm_tree *tree, uint32_t node) {
  uint64_t sum = 0;
  for (uint32_t i = tree->nodes[node].newest; i != PM_TREE_NONE; i = tree->times[i].older) {
    sum += tree->times[i].ns;
  }
  return sum;
}

uint32_t pm__tree_times(const struct pm_tree *tree) { return tree->time_count - tree->times_free; }

bool pm__tree_is_full(const struct pm_tree *tree, uint32_t frames) {
  return (uint64_t)tree->count + frames > tree->nodes_full ||
         pm__tree_times(tree) >= tree->times_full;
}

void pm__tree_relink(struct pm_tree *tree) {
  for (uint32_t i = 0; i < tree->count; i++) tree->nodes[i].first_child = PM_TREE_NONE;
  for (uint32_t i = 0; i < tree->count; i++) {
    if (tree->nodes[i].parent != PM_TREE_NONE) link_child(tree, i);
  }
  fill_slots(tree);
}
