/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.h: a thread's call tree, cut to a depth. Stacks that are too deep lose their
 * middle, so root and leaf both stay and every total is kept.
 */
#ifndef PM_EXPORT_CUT_H
#define PM_EXPORT_CUT_H

#include "base/arena.h"
#include "profile/view.h"

/* Nodes on a path: what spark itself stops at; browsers die between 1,000 and 1,800. */
enum { PM_CUT_DEPTH = 300 };

#define PM_CUT_NONE UINT32_MAX /* parent of an outermost frame; frame of a cut */

struct pm_cut_node {
  uint32_t parent;  /* index into nodes, smaller than the node's own; PM_CUT_NONE */
  uint32_t frame;   /* index into the view's frames; PM_CUT_NONE: a cut */
  uint32_t removed; /* of a cut: most frames it took out of one stack */
};

struct pm_cut_tree {
  uint32_t count;
  struct pm_cut_node *nodes;
  const uint64_t *ns; /* ns[node * window_count + window], inclusive */
};

/*
 * Fills `tree`, in time and memory linear in the thread's nodes. Memory belongs to
 * `arena`, or to the view. 0 or PYROMETER_E_MEMORY.
 */
int pm__cut_tree(struct pm_arena *arena, const struct pm_view *view,
                 const struct pm_view_thread *thread, struct pm_cut_tree *tree);

#endif /* PM_EXPORT_CUT_H */
