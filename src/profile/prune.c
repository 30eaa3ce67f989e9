/* SPDX-License-Identifier: Apache-2.0 */
/* See prune.h. */
#include "profile/prune.h"

#include <stdlib.h>

enum { LEAST_KEPT = 4, BYTE_VALUES = 256 };

/* While folding. The arrays are indexed by nodes, old or new ones. */
struct pruning {
  struct pm_tree *tree;
  uint64_t *total; /* by old node: inclusive ns; UINT64_MAX: stays in any case */
  uint32_t *moved; /* by old node: the node that it has become, or been folded into */
  uint32_t *fold;  /* by new node: its (pruned) child, or PM_TREE_NONE */
  uint32_t count;  /* new nodes so far: never more than old nodes seen */
  uint64_t bound;  /* heavier nodes stay */
  uint32_t ties;   /* of those as heavy as that, how many more may stay */
};

static bool is_pruned(const struct pm_tree *tree, uint32_t node) {
  return pm__frame_key_is_pseudo(tree->nodes[node].frame, PM_PSEUDO_PRUNED);
}

/* Roots, and what keeps the accounts of a thread. */
static bool must_stay(const struct pm_tree *tree, uint32_t node) {
  uint32_t parent = tree->nodes[node].parent;
  if (parent == PM_TREE_NONE) return true;
  if (tree->nodes[parent].parent != PM_TREE_NONE) return false;
  return pm__frame_key_is_pseudo(tree->nodes[node].frame, PM_PSEUDO_OWN) ||
         pm__frame_key_is_pseudo(tree->nodes[node].frame, PM_PSEUDO_UNSAMPLED);
}

/* A (pruned) node weighs nothing by itself: it stays or goes with its parent. */
static void weigh(struct pruning *p) {
  const struct pm_tree *tree = p->tree;
  for (uint32_t i = 0; i < tree->count; i++) p->total[i] = 0;
  for (uint32_t i = tree->count; i-- > 0;) {
    uint32_t parent = tree->nodes[i].parent;
    p->total[i] += pm__tree_self(tree, i);
    if (parent != PM_TREE_NONE) p->total[parent] += p->total[i];
    if (must_stay(tree, i)) p->total[i] = UINT64_MAX;
    if (is_pruned(tree, i)) p->total[i] = 0;
  }
}

/* The byte of the `rank`-th largest value at `shift`, among values that begin with `prefix`. */
static uint64_t next_byte(const struct pruning *p, uint64_t prefix, int shift, uint32_t *rank) {
  uint32_t counts[BYTE_VALUES] = {0};
  for (uint32_t i = 0; i < p->tree->count; i++) {
    bool inside = shift == 56 || p->total[i] >> (shift + 8) == prefix;
    if (inside) counts[p->total[i] >> shift & 255]++;
  }
  uint64_t byte = BYTE_VALUES - 1;
  while (byte > 0 && *rank >= counts[byte]) *rank -= counts[byte--];
  return byte;
}

/* Sets bound and ties so that `keep` nodes stay. */
static void find_bound(struct pruning *p, uint32_t keep) {
  uint32_t rank = keep - 1;
  p->bound = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    p->bound = p->bound << 8 | next_byte(p, p->bound, shift, &rank);
  }
  p->ties = rank + 1;
}

/* A parent is at least as heavy and comes first, so it stays as well. */
static bool stays(struct pruning *p, uint32_t node) {
  if (is_pruned(p->tree, node) || p->total[node] < p->bound) return false;
  if (p->total[node] > p->bound || p->bound == UINT64_MAX) return true;
  return p->ties > 0 && p->ties-- > 0;
}

static uint32_t put_node(struct pruning *p, const struct pm_tree_node *node, uint32_t parent) {
  p->tree->nodes[p->count] = *node;
  p->tree->nodes[p->count].parent = parent;
  p->fold[p->count] = PM_TREE_NONE;
  return p->count++;
}

/* The (pruned) node for what hangs below the new node `above`. */
static uint32_t fold_below(struct pruning *p, uint32_t above) {
  if (is_pruned(p->tree, above)) return above;
  if (p->fold[above] == PM_TREE_NONE) {
    const struct pm_tree_node node = {.frame = pm__frame_key_pseudo(PM_PSEUDO_PRUNED),
                                      .newest = PM_TREE_NONE};
    p->fold[above] = put_node(p, &node, above);
  }
  return p->fold[above];
}

/* Both lists have descending windows. */
static void fold_times(struct pm_tree *tree, uint32_t into, uint32_t time) {
  uint32_t *place = &tree->nodes[into].newest;
  for (uint32_t older; time != PM_TREE_NONE; time = older) {
    struct pm_tree_time *folded = &tree->times[time];
    older = folded->older;
    while (*place != PM_TREE_NONE && tree->times[*place].window > folded->window) {
      place = &tree->times[*place].older;
    }
    if (*place != PM_TREE_NONE && tree->times[*place].window == folded->window) {
      tree->times[*place].ns += folded->ns;
      pm__tree_release_time(tree, time);
    } else {
      folded->older = *place;
      *place = time;
    }
  }
}

static void fold_node(struct pruning *p, uint32_t i) {
  struct pm_tree_node node = p->tree->nodes[i]; /* its place may be taken by what is put */
  bool stay = stays(p, i), was_pruned = is_pruned(p->tree, i);
  uint32_t parent = node.parent == PM_TREE_NONE ? PM_TREE_NONE : p->moved[node.parent];
  if (stay) {
    p->moved[i] = put_node(p, &node, parent);
    return;
  }
  p->moved[i] = fold_below(p, parent);
  fold_times(p->tree, p->moved[i], node.newest);
  if (!was_pruned) p->tree->pruned++;
}

/* Down to the `keep` heaviest nodes, and a (pruned) one below each at most. */
static void prune_to(struct pruning *p, uint32_t keep) {
  weigh(p);
  find_bound(p, keep);
  p->count = 0;
  for (uint32_t i = 0; i < p->tree->count; i++) fold_node(p, i);
  p->tree->count = p->count;
}

static uint32_t three_quarters(uint32_t of) { return of - of / 4; }

static bool fits(const struct pm_tree *tree) {
  return tree->count <= three_quarters(tree->nodes_max) &&
         pm__tree_times(tree) <= three_quarters(tree->times_max);
}

/* What must stay may be more than the limit: even then it is not tried again at once. */
static uint32_t full_at(uint32_t count, uint32_t max) {
  uint32_t later = count + max / 4;
  return later > max ? later : max;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

bool pm__prune_tree(struct pm_tree *tree) {
  struct pruning p = {.tree = tree};
  p.total = malloc(sizeof *p.total * tree->count);
  p.moved = malloc(sizeof *p.moved * tree->count);
  p.fold = malloc(sizeof *p.fold * tree->count);
  bool ready = p.total != NULL && p.moved != NULL && p.fold != NULL;
  if (ready) {
    uint32_t keep = three_quarters(smaller(tree->nodes_max, tree->count));
    /* An eighth for the (pruned) nodes; were that too little, half would be enough. */
    prune_to(&p, keep -= keep / 8);
    while (!fits(tree) && keep > LEAST_KEPT) prune_to(&p, keep = three_quarters(keep));
    pm__tree_relink(tree);
    tree->nodes_full = full_at(tree->count, tree->nodes_max);
    tree->times_full = full_at(pm__tree_times(tree), tree->times_max);
  }
  free(p.total);
  free(p.moved);
  free(p.fold);
  return ready;
}
