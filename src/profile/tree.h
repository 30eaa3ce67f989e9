/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live call tree: one root a thread, nodes found by (parent, frame). Grows
 * by distinct stacks, not by samples.
 *
 * Owner:    the collector, under the session's profile lock.
 */
#ifndef PM_PROFILE_TREE_H
#define PM_PROFILE_TREE_H

#include "base/base.h"
#include "profile/frame.h"

enum { PM_TREE_NONE = UINT32_MAX };

/* CPU that a node was the innermost frame for, in one window. */
struct pm_tree_time {
  uint32_t window;
  uint64_t ns;
};

struct pm_tree_node {
  struct pm_frame_key frame;
  uint32_t parent;       /* PM_TREE_NONE for a thread's root */
  uint32_t first_child;  /* PM_TREE_NONE: a leaf */
  uint32_t next_sibling;
  uint32_t time_count, time_room;
  struct pm_tree_time *times; /* ascending windows */
};

struct pm_tree {
  struct pm_tree_node *nodes;
  uint32_t count, room;
  uint32_t *slots; /* open addressing over (parent, frame): node index, or PM_TREE_NONE */
  uint32_t slot_count; /* a power of two */
};

/* All return false (or PM_TREE_NONE) when memory is short; the tree stays whole. */
bool pm__tree_init(struct pm_tree *tree);
void pm__tree_free(struct pm_tree *tree);
/* A new root, for a new thread. */
uint32_t pm__tree_add_root(struct pm_tree *tree);
/* The child of `parent` for `frame`, made if needed. */
uint32_t pm__tree_child(struct pm_tree *tree, uint32_t parent, struct pm_frame_key frame);
/* Books ns of CPU on a node in a window that is not older than the node's last one. */
bool pm__tree_book(struct pm_tree *tree, uint32_t node, uint32_t window, uint64_t ns);
/* Halves the number of windows: window w becomes w / 2. */
void pm__tree_coalesce(struct pm_tree *tree);

#endif /* PM_PROFILE_TREE_H */
