/* SPDX-License-Identifier: Apache-2.0 */
/* The live call tree: one node a path, times by window, joined windows. */
#include "profile/tree.h"

#include "check.h"

static struct pm_frame_key key(uint64_t value) {
  return (struct pm_frame_key){.kind = PM_KEY_NATIVE, .id = 1, .value = value};
}

static void test_paths(void) {
  struct pm_tree tree;
  CHECK(pm__tree_init(&tree));
  uint32_t root = pm__tree_add_root(&tree), other = pm__tree_add_root(&tree);
  uint32_t a = pm__tree_child(&tree, root, key(7));
  CHECK_EQ_INT(pm__tree_child(&tree, root, key(7)), a);
  CHECK(pm__tree_child(&tree, root, key(8)) != a);
  CHECK(pm__tree_child(&tree, other, key(7)) != a);
  CHECK(pm__tree_child(&tree, a, key(7)) != a);
  CHECK_EQ_INT(tree.count, 6);
  pm__tree_free(&tree);
}

static void test_growth(void) {
  struct pm_tree tree;
  CHECK(pm__tree_init(&tree));
  uint32_t root = pm__tree_add_root(&tree);
  for (uint64_t i = 0; i < 20000; i++) pm__tree_child(&tree, root, key(i));
  CHECK_EQ_INT(tree.count, 20001);
  for (uint64_t i = 0; i < 20000; i++) {
    uint32_t node = pm__tree_child(&tree, root, key(i));
    CHECK_EQ_INT(tree.nodes[node].frame.value, i);
  }
  CHECK_EQ_INT(tree.count, 20001);
  uint32_t children = 0;
  for (uint32_t n = tree.nodes[root].first_child; n != PM_TREE_NONE; n = tree.nodes[n].next_sibling)
    children++;
  CHECK_EQ_INT(children, 20000);
  pm__tree_free(&tree);
}

static void test_windows(void) {
  struct pm_tree tree;
  CHECK(pm__tree_init(&tree));
  uint32_t root = pm__tree_add_root(&tree);
  for (uint32_t w = 0; w < 6; w++) {
    CHECK(pm__tree_book(&tree, root, w, 10));
    CHECK(pm__tree_book(&tree, root, w, w));
  }
  CHECK_EQ_INT(pm__tree_times(&tree), 6);
  pm__tree_coalesce(&tree);
  CHECK_EQ_INT(pm__tree_times(&tree), 3);
  CHECK_EQ_INT(pm__tree_self(&tree, root), 75);
  uint32_t time = tree.nodes[root].newest;
  for (uint32_t w = 3; w-- > 0; time = tree.times[time].older) {
    CHECK_EQ_INT(tree.times[time].window, w);
    CHECK_EQ_INT(tree.times[time].ns, 20 + 4 * w + 1);
  }
  CHECK_EQ_INT(time, PM_TREE_NONE);
  for (uint32_t i = 0; i < 3; i++) CHECK(pm__tree_book(&tree, root, 3 + i, 1));
  CHECK_EQ_INT(tree.time_count, 6); /* those given back were used again */
  pm__tree_free(&tree);
}

int main(void) {
  test_paths();
  test_growth();
  test_windows();
  return check_report();
}
