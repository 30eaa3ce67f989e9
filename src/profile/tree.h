/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live call tree: one root a thread, nodes found by (parent, frame). Grows
 * by distinct stacks, not by samples, up to a limit: a full tree is 15 MB.
 *
 * Owner:    the collector, under the session's profile lock.
 */
#ifndef PM_PROFILE_TREE_H
#define PM_PROFILE_TREE_H

#include "base/base.h"
#include "profile/frame.h"

enum {
  PM_TREE_NONE = UINT32_MAX,
  PM_TREE_NODES_MAX = 131072, /* then the lightest are folded; prune.h */
  PM_TREE_TIMES_MAX = 524288, /* the same: windows in which nodes had CPU of their own */
};

/* CPU that a node was the innermost frame for, in one window. */
struct pm_tree_time {
  uint64_t ns;
  uint32_t window;
  uint32_t older; /* the node's time before this one; PM_TREE_NONE */
};

struct pm_tree_node {
  struct pm_frame_key frame;
  uint32_t parent;       /* PM_TREE_NONE for a thread's root */
  uint32_t first_child;  /* PM_TREE_NONE: a leaf */
  uint32_t next_sibling;
  uint32_t newest; /* of its times, which have descending windows; PM_TREE_NONE */
};

struct pm_tree {
  struct pm_tree_node *nodes; /* a node stands behind its parent; roots in the order they came */
  uint32_t count, room;
  uint32_t *slots; /* open addressing over (parent, frame): node index, or PM_TREE_NONE */
  uint32_t slot_count; /* a power of two */
  struct pm_tree_time *times;
  uint32_t time_count, time_room; /* time_count: handed out at some time */
  uint32_t time_free, times_free; /* the first of those given back, and how many */
  uint32_t nodes_full, times_full; /* the tree is full here: the limits, or more after a prune */
  uint32_t nodes_max, times_max;   /* the limits; tests lower them */
  uint64_t pruned;                 /* nodes folded so far */
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
/* CPU in ns that a node was the innermost frame for, over all windows. */
uint64_t pm__tree_self(const struct pm_tree *tree, uint32_t node);
/* Times that nodes have. */
uint32_t pm__tree_times(const struct pm_tree *tree);
/* Is it too full for one more stack of `frames`? Then pm__prune_tree. */
bool pm__tree_is_full(const struct pm_tree *tree, uint32_t frames);
/* What it holds of memory. */
size_t pm__tree_bytes(const struct pm_tree *tree);

/* For prune.c: gives a time back; makes children and slots anew from the nodes' parents. */
void pm__tree_release_time(struct pm_tree *tree, uint32_t time);
void pm__tree_relink(struct pm_tree *tree);

#endif /* PM_PROFILE_TREE_H */
