/* SPDX-License-Identifier: Apache-2.0 */
/* A call tree that is full: what goes, what stays, and that no CPU is lost. */
#include "profile/prune.h"

#include <stdlib.h>

#include "check.h"
#include "profile/profile.h"

enum { STACKS = 1000000, WINDOWS = 5, HOT = 100, LIMIT = 1000 };

static const size_t most_bytes = 15u << 20;

static struct pm_frame_key key(uint64_t value) {
  return (struct pm_frame_key){.kind = PM_KEY_NATIVE, .id = 1, .value = value};
}

static struct pm_tree small_tree(uint32_t nodes, uint32_t times) {
  struct pm_tree tree;
  CHECK(pm__tree_init(&tree));
  tree.nodes_max = tree.nodes_full = nodes;
  tree.times_max = tree.times_full = times;
  return tree;
}

/* Books ns on a path of frames, named by the bytes of `path`. */
static uint32_t book(struct pm_tree *tree, uint32_t root, const char *path, uint32_t window,
                     uint64_t ns) {
  uint32_t node = root;
  for (; *path != '\0'; path++) node = pm__tree_child(tree, node, key((uint64_t)*path));
  if (ns > 0) CHECK(pm__tree_book(tree, node, window, ns));
  return node;
}

static uint32_t child_with(const struct pm_tree *tree, uint32_t parent, struct pm_frame_key frame) {
  uint32_t child = parent == PM_TREE_NONE ? PM_TREE_NONE : tree->nodes[parent].first_child;
  while (child != PM_TREE_NONE && !pm__frame_key_equal(tree->nodes[child].frame, frame)) {
    child = tree->nodes[child].next_sibling;
  }
  return child;
}

static uint32_t find(const struct pm_tree *tree, uint32_t root, const char *path) {
  for (; *path != '\0'; path++) root = child_with(tree, root, key((uint64_t)*path));
  return root;
}

static uint32_t pruned_below(const struct pm_tree *tree, uint32_t node) {
  return child_with(tree, node, pm__frame_key_pseudo(PM_PSEUDO_PRUNED));
}

static uint64_t self_in(const struct pm_tree *tree, uint32_t node, uint32_t window) {
  uint64_t ns = 0;
  for (uint32_t i = tree->nodes[node].newest; i != PM_TREE_NONE; i = tree->times[i].older) {
    if (tree->times[i].window == window) ns += tree->times[i].ns;
  }
  return ns;
}

/* Self time by root and window, as the nodes and their parents have it. */
struct sums {
  uint64_t ns[2][WINDOWS];
};

static struct sums sums_of(const struct pm_tree *tree) {
  struct sums sums = {0};
  uint32_t roots = 0, *root = calloc(tree->count, sizeof *root);
  for (uint32_t i = 0; i < tree->count; i++) {
    uint32_t parent = tree->nodes[i].parent;
    CHECK(parent == PM_TREE_NONE || parent < i);
    root[i] = parent == PM_TREE_NONE ? roots++ : root[parent];
    for (uint32_t w = 0; w < WINDOWS; w++) sums.ns[root[i]][w] += self_in(tree, i, w);
  }
  CHECK(roots <= 2);
  free(root);
  return sums;
}

/* Links, slots and times say the same as the parents do. */
static void check_whole(struct pm_tree *tree) {
  uint32_t linked = 0, times = 0, roots = 0;
  for (uint32_t i = 0; i < tree->count; i++) {
    const struct pm_tree_node *node = &tree->nodes[i];
    uint32_t last = UINT32_MAX;
    for (uint32_t t = node->newest; t != PM_TREE_NONE; t = tree->times[t].older, times++) {
      CHECK(tree->times[t].window < last);
      last = tree->times[t].window;
    }
    for (uint32_t c = node->first_child; c != PM_TREE_NONE; c = tree->nodes[c].next_sibling) {
      linked += tree->nodes[c].parent == i;
    }
    roots += node->parent == PM_TREE_NONE;
    if (node->parent != PM_TREE_NONE) {
      CHECK_EQ_INT(pm__tree_child(tree, node->parent, node->frame), i);
    }
  }
  CHECK_EQ_INT(linked, tree->count - roots);
  CHECK_EQ_INT(times, pm__tree_times(tree));
}

static void prune(struct pm_tree *tree) {
  struct sums before = sums_of(tree);
  CHECK(pm__prune_tree(tree));
  struct sums after = sums_of(tree);
  CHECK(memcmp(&before, &after, sizeof after) == 0);
  check_whole(tree);
}

static void test_lightest_go(void) {
  struct pm_tree tree = small_tree(16, 100);
  uint32_t root = pm__tree_add_root(&tree);
  book(&tree, root, "a", 0, 50);
  book(&tree, root, "ab", 1, 40);
  book(&tree, root, "abc", 0, 30);
  book(&tree, root, "ad", 0, 2);
  book(&tree, root, "ade", 1, 1); /* light, and so is all below it */
  book(&tree, root, "af", 1, 2);
  for (char name[] = "g"; *name < 'o'; ++*name) book(&tree, root, name, 2, 1);
  CHECK_EQ_INT(tree.count, 15);
  CHECK(!pm__tree_is_full(&tree, 1));
  CHECK(pm__tree_is_full(&tree, 2));
  tree.nodes_max = 8;
  prune(&tree);
  CHECK_EQ_INT(tree.count, 6);
  CHECK_EQ_INT(tree.pruned, 11);
  CHECK_EQ_INT(pm__tree_self(&tree, find(&tree, root, "a")), 50);
  CHECK_EQ_INT(pm__tree_self(&tree, find(&tree, root, "abc")), 30);
  CHECK_EQ_INT(find(&tree, root, "ad"), PM_TREE_NONE);
  uint32_t folded = pruned_below(&tree, find(&tree, root, "a"));
  CHECK_EQ_INT(self_in(&tree, folded, 0), 2);
  CHECK_EQ_INT(self_in(&tree, folded, 1), 3);
  CHECK_EQ_INT(self_in(&tree, pruned_below(&tree, root), 2), 8);
  pm__tree_free(&tree);
}

/* A (pruned) node takes more, and goes into its grandparent's when its parent goes. */
static void test_pruned_again(void) {
  struct pm_tree tree = small_tree(8, 100);
  uint32_t root = pm__tree_add_root(&tree);
  book(&tree, root, "a", 0, 90);
  book(&tree, root, "ab", 0, 10);
  for (char name[] = "abg"; name[2] < 'o'; ++name[2]) book(&tree, root, name, 0, 1);
  prune(&tree);
  uint32_t ab = find(&tree, root, "ab");
  CHECK(ab != PM_TREE_NONE);
  CHECK(pruned_below(&tree, ab) != PM_TREE_NONE);
  uint64_t once = tree.pruned;
  for (char name[] = "x"; *name > 's'; --*name) book(&tree, root, name, 1, 50);
  prune(&tree);
  CHECK_EQ_INT(find(&tree, root, "ab"), PM_TREE_NONE);
  CHECK_EQ_INT(pm__tree_self(&tree, pruned_below(&tree, find(&tree, root, "a"))), 18);
  CHECK(tree.pruned > once);
  pm__tree_free(&tree);
}

static void test_accounts_stay(void) {
  struct pm_tree tree = small_tree(8, 100);
  uint32_t root = pm__tree_add_root(&tree), other = pm__tree_add_root(&tree);
  uint32_t rest = pm__tree_child(&tree, other, pm__frame_key_pseudo(PM_PSEUDO_UNSAMPLED));
  CHECK(pm__tree_book(&tree, rest, 0, 1));
  for (char name[] = "a"; *name < 'z'; ++*name) book(&tree, root, name, 0, 9);
  prune(&tree);
  CHECK_EQ_INT(tree.nodes[1].parent, PM_TREE_NONE);
  rest = child_with(&tree, 1, pm__frame_key_pseudo(PM_PSEUDO_UNSAMPLED));
  CHECK(rest != PM_TREE_NONE);
  CHECK_EQ_INT(self_in(&tree, rest, 0), 1);
  pm__tree_free(&tree);
}

/* Few nodes, but CPU in many windows. */
static void test_times_are_limited(void) {
  struct pm_tree tree = small_tree(100000, LIMIT);
  uint32_t root = pm__tree_add_root(&tree);
  for (uint32_t w = 0; w < WINDOWS; w++) {
    for (uint64_t i = 0; i < LIMIT; i++) {
      CHECK(pm__tree_book(&tree, pm__tree_child(&tree, root, key(i)), w, i + 1));
    }
  }
  CHECK(pm__tree_is_full(&tree, 1));
  prune(&tree);
  CHECK(pm__tree_times(&tree) <= LIMIT * 3 / 4);
  CHECK(pm__tree_times(&tree) > LIMIT / 2);
  CHECK(!pm__tree_is_full(&tree, 1));
  CHECK(child_with(&tree, root, key(LIMIT - 1)) != PM_TREE_NONE);
  pm__tree_free(&tree);
}

/* More threads than the limit: nothing can go, and that is not tried for every sample. */
static void test_too_much_must_stay(void) {
  struct pm_tree tree = small_tree(16, 100);
  for (uint32_t i = 0; i < LIMIT; i++) pm__tree_add_root(&tree);
  CHECK(pm__tree_is_full(&tree, 1));
  CHECK(pm__prune_tree(&tree));
  CHECK_EQ_INT(tree.count, LIMIT);
  CHECK(!pm__tree_is_full(&tree, 1));
  pm__tree_free(&tree);
}

static struct pm_merged stack_of(uint64_t number) {
  struct pm_merged merged = {.stack.count = 4};
  for (uint32_t i = 0; i < 3; i++) merged.stack.frames[i] = key(1000 + number % (10u << i));
  merged.stack.frames[3] = key(1000000 + number);
  return merged;
}

/* Of the hot stacks each is booked often, in all windows. */
static uint64_t book_many(struct pm_profile *profile, const uint32_t threads[2]) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < STACKS; i++) {
    if (i % (STACKS / WINDOWS) == 0) {
      pm__profile_roll(profile, profile->start_ns + profile->window_ns * profile->window_count);
    }
    struct pm_merged cold = stack_of(HOT + i), hot = stack_of(i % HOT);
    pm__profile_book(profile, threads[i & 1], &cold, 10 + i % 3);
    pm__profile_book(profile, threads[i % HOT & 1], &hot, 1000);
    sum += 1010 + i % 3;
  }
  return sum;
}

static void check_view(const struct pm_profile *profile, uint64_t sum) {
  struct pm_view *view = pm__profile_view(profile, json_object());
  CHECK(view != NULL);
  uint64_t self = 0, roots = 0, windows = 0;
  for (uint32_t i = 0; i < view->node_count; i++) self += view->nodes[i].self_ns;
  for (uint32_t i = 0; i < view->node_count; i += view->nodes[i].subtree) {
    roots += view->nodes[i].total_ns;
    for (uint32_t w = 0; w < view->window_count; w++) {
      windows += view->total_by_window[i * view->window_count + w];
    }
  }
  CHECK_EQ_INT(self, sum);
  CHECK_EQ_INT(roots, sum);
  CHECK_EQ_INT(windows, sum);
  bool shown = false;
  for (uint32_t i = 0; i < view->frame_count; i++) {
    shown |= view->frames[i].kind == PM_FRAME_PSEUDO && view->frames[i].self_ns > 0 &&
             strcmp(view->frames[i].name, "(pruned)") == 0;
  }
  CHECK(shown);
  pm__view_free(view);
}

/* What the hot stack `number` has at its leaf. */
static uint64_t self_of_stack(const struct pm_profile *profile, uint32_t root, uint64_t number) {
  struct pm_merged merged = stack_of(number);
  for (uint32_t i = 0; i < merged.stack.count; i++) {
    root = child_with(&profile->tree, root, merged.stack.frames[i]);
  }
  return root == PM_TREE_NONE ? 0 : pm__tree_self(&profile->tree, root);
}

static void test_million_stacks(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  const uint32_t threads[2] = {pm__profile_add_thread(&profile, 7, "seven"),
                               pm__profile_add_thread(&profile, 8, "eight")};
  uint64_t sum = book_many(&profile, threads);
  CHECK_EQ_INT(profile.dropped, 0);
  CHECK_EQ_INT(profile.sampled_ns, sum);
  CHECK(profile.tree.count <= PM_TREE_NODES_MAX);
  CHECK(profile.tree.pruned > STACKS - PM_TREE_NODES_MAX);
  CHECK(pm__tree_bytes(&profile.tree) <= most_bytes);
  for (uint64_t i = 0; i < HOT; i++) {
    uint32_t root = profile.threads[threads[i & 1]].root;
    CHECK_EQ_INT(self_of_stack(&profile, root, i), 1000u * STACKS / HOT);
  }
  check_whole(&profile.tree);
  check_view(&profile, sum);
  printf("%u stacks: %u nodes, %u times, %.1f MB\n", STACKS, profile.tree.count,
         pm__tree_times(&profile.tree), (double)pm__tree_bytes(&profile.tree) / 1e6);
  pm__profile_free(&profile);
}

int main(void) {
  test_lightest_go();
  test_pruned_again();
  test_accounts_stay();
  test_times_are_limited();
  test_too_much_must_stay();
  test_million_stacks();
  return check_report();
}
