/* SPDX-License-Identifier: Apache-2.0 */
/* The live call tree; see tree.h. */
#include "profile/tree.h"

#include <stdlib.h>

enum { FIRST_NODES = 1024, FIRST_SLOTS = 4096 };

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
  *tree = (struct pm_tree){.room = FIRST_NODES, .slot_count = FIRST_SLOTS};
  tree->nodes = malloc(sizeof *tree->nodes * FIRST_NODES);
  tree->slots = malloc(sizeof *tree->slots * FIRST_SLOTS);
  if (tree->nodes == NULL || tree->slots == NULL) {
    pm__tree_free(tree);
    return false;
  }
  clear_slots(tree);
  return true;
}

void pm__tree_free(struct pm_tree *tree) {
  for (uint32_t i = 0; i < tree->count; i++) free(tree->nodes[i].times);
  free(tree->nodes);
  free(tree->slots);
  *tree = (struct pm_tree){0};
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

static bool grow_slots(struct pm_tree *tree) {
  uint32_t *bigger = malloc(sizeof *bigger * tree->slot_count * 2);
  if (bigger == NULL) return false;
  free(tree->slots);
  tree->slots = bigger;
  tree->slot_count *= 2;
  clear_slots(tree);
  for (uint32_t i = 0; i < tree->count; i++) {
    if (tree->nodes[i].parent != PM_TREE_NONE) {
      *find_slot(tree, tree->nodes[i].parent, tree->nodes[i].frame) = i;
    }
  }
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
      .frame = frame, .parent = parent, .first_child = PM_TREE_NONE, .next_sibling = PM_TREE_NONE};
  return tree->count++;
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
  tree->nodes[node].next_sibling = tree->nodes[parent].first_child;
  tree->nodes[parent].first_child = node;
  return node;
}

static bool add_time(struct pm_tree_node *node, uint32_t window, uint64_t ns) {
  if (node->time_count == node->time_room) {
    uint32_t room = node->time_room == 0 ? 1 : node->time_room * 2;
    struct pm_tree_time *bigger = realloc(node->times, sizeof *bigger * room);
    if (bigger == NULL) return false;
    node->times = bigger;
    node->time_room = room;
  }
  node->times[node->time_count++] = (struct pm_tree_time){.window = window, .ns = ns};
  return true;
}

bool pm__tree_book(struct pm_tree *tree, uint32_t index, uint32_t window, uint64_t ns) {
  struct pm_tree_node *node = &tree->nodes[index];
  if (node->time_count > 0 && node->times[node->time_count - 1].window == window) {
    node->times[node->time_count - 1].ns += ns;
    return true;
  }
  return add_time(node, window, ns);
}

static void coalesce_node(struct pm_tree_node *node) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < node->time_count; i++) {
    struct pm_tree_time time = {.window = node->times[i].window / 2, .ns = node->times[i].ns};
    if (kept > 0 && node->times[kept - 1].window == time.window) {
      node->times[kept - 1].ns += time.ns;
    } else {
      node->times[kept++] = time;
    }
  }
  node->time_count = kept;
}

void pm__tree_coalesce(struct pm_tree *tree) {
  for (uint32_t i = 0; i < tree->count; i++) coalesce_node(&tree->nodes[i]);
}
