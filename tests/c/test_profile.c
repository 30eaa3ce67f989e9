/* SPDX-License-Identifier: Apache-2.0 */
/* The growing profile and the view of it: windows, accounts, order, recursion. No interpreter. */
#include "profile/profile.h"

#include <stdlib.h>

#include "check.h"

static const uint64_t second = 1000000000u;

static struct pm_frame_key key(uint64_t value) {
  return (struct pm_frame_key){.kind = PM_KEY_PYTHON, .id = (uint32_t)value};
}

/* Books ns on the path of pseudo frames that `path` names, 'a' for the first of them. */
static void book(struct pm_profile *profile, uint32_t thread, const char *path, uint64_t ns) {
  uint32_t node = profile->threads[thread].root;
  for (; *path != '\0'; path++) {
    struct pm_frame_key frame = pm__frame_key_pseudo((enum pm_pseudo)(*path - 'a'));
    node = pm__tree_child(&profile->tree, node, frame);
  }
  CHECK(pm__tree_book(&profile->tree, node, profile->window_count - 1, ns));
  profile->threads[thread].sampled_ns += ns;
  profile->sampled_ns += ns;
}

static struct pm_view *view_of(const struct pm_profile *profile) {
  struct pm_view *view = pm__profile_view(profile, json_object());
  CHECK(view != NULL);
  return view;
}

static void test_windows_follow_time(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint64_t start = profile.start_ns;
  pm__profile_roll(&profile, start + 59 * second);
  CHECK_EQ_INT(profile.window_count, 1);
  pm__profile_roll(&profile, start + 60 * second);
  CHECK_EQ_INT(profile.window_count, 2);
  pm__profile_roll(&profile, start + 305 * second); /* idle minutes have windows too */
  CHECK_EQ_INT(profile.window_count, 6);
  CHECK_EQ_INT(profile.windows[5].start_ms - profile.windows[0].start_ms, 300000);
  pm__profile_free(&profile);
}

static void test_windows_are_joined(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint32_t thread = pm__profile_add_thread(&profile, 7, "t");
  for (uint64_t minute = 0; minute < 130; minute++) {
    pm__profile_roll(&profile, profile.start_ns + minute * 60 * second);
    book(&profile, thread, "a", 1000);
  }
  CHECK(profile.window_count <= PM_WINDOWS_MAX);
  CHECK_EQ_INT(profile.window_ns, 240 * second); /* joined twice */
  CHECK_EQ_INT(profile.window_count, 33);
  struct pm_view *view = view_of(&profile);
  CHECK_EQ_INT(view->window_count, 33);
  CHECK_EQ_INT(view->nodes[0].total_ns, 130000);
  uint64_t sum = 0;
  for (uint32_t w = 0; w < view->window_count; w++) sum += view->total_by_window[w];
  CHECK_EQ_INT(sum, 130000);
  CHECK_EQ_INT(view->total_by_window[0], 4000);
  pm__view_free(view);
  pm__profile_free(&profile);
}

static void test_accounts(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint32_t thread = pm__profile_add_thread(&profile, 7, "t");
  book(&profile, thread, "a", 700);
  pm__profile_settle_thread(&profile, thread, 1000, 50, 100);
  CHECK_EQ_INT(profile.threads[thread].sampled_ns, 750);
  CHECK_EQ_INT(profile.threads[thread].unsampled_ns,
               150); /* the slack is left for the next sample */
  book(&profile, thread, "a", 100);
  pm__profile_settle_thread(&profile, thread, 1000, 50, 0);
  CHECK_EQ_INT(profile.threads[thread].unsampled_ns, 150);
  pm__profile_settle_thread(&profile, thread, 1400, 60, 0);
  CHECK_EQ_INT(profile.threads[thread].sampled_ns + profile.threads[thread].unsampled_ns, 1400);
  pm__profile_settle_thread(&profile, thread, 900, 60, 0); /* a clock never goes back */
  CHECK_EQ_INT(profile.threads[thread].cpu_ns, 1400);
  struct pm_view *view = view_of(&profile);
  uint64_t roots = 0;
  for (uint32_t i = 0; i < view->node_count; i += view->nodes[i].subtree)
    roots += view->nodes[i].total_ns;
  CHECK_EQ_INT(roots, 1400);
  pm__view_free(view);
  pm__profile_free(&profile);
}

static void test_view_is_ordered(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint32_t light = pm__profile_add_thread(&profile, 1, "light");
  uint32_t heavy = pm__profile_add_thread(&profile, 2, "heavy");
  pm__profile_add_thread(&profile, 3, "idle");
  book(&profile, light, "a", 10);
  book(&profile, heavy, "ab", 20);
  book(&profile, heavy, "ad", 50);
  book(&profile, heavy, "a", 5);
  struct pm_view *view = view_of(&profile);
  CHECK_EQ_INT(view->thread_count, 2);
  CHECK_EQ_STR(view->threads[0].name, "heavy");
  CHECK_EQ_INT(view->threads[0].node_count, 3);
  CHECK_EQ_INT(view->nodes[0].subtree, 3);
  CHECK_EQ_INT(view->nodes[0].total_ns, 75);
  CHECK_EQ_INT(view->nodes[0].self_ns, 5);
  CHECK_EQ_INT(view->nodes[1].total_ns, 50);
  CHECK_EQ_INT(view->nodes[2].total_ns, 20);
  CHECK_EQ_INT(view->nodes[2].depth, 1);
  pm__view_free(view);
  pm__profile_free(&profile);
}

/* A function that calls itself is counted once in its total. */
static void test_recursion_counts_once(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint32_t thread = pm__profile_add_thread(&profile, 1, "t");
  book(&profile, thread, "aba", 10);
  book(&profile, thread, "aa", 7);
  book(&profile, thread, "b", 3);
  struct pm_view *view = view_of(&profile);
  uint64_t self = 0;
  for (uint32_t i = 0; i < view->frame_count; i++) {
    CHECK(view->frames[i].self_ns <= view->frames[i].total_ns);
    CHECK(view->frames[i].total_ns <= 20);
    self += view->frames[i].self_ns;
  }
  CHECK_EQ_INT(self, 20);
  CHECK_EQ_INT(view->frames[view->nodes[0].frame].total_ns, 17);
  pm__view_free(view);
  pm__profile_free(&profile);
}

/* Codes that nobody registered have one name, so their nodes are one node. */
static void test_equal_names_are_one_node(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  uint32_t thread = pm__profile_add_thread(&profile, 1, "t");
  for (uint64_t code = 1; code <= 3; code++) {
    uint32_t node = pm__tree_child(&profile.tree, profile.threads[thread].root, key(code));
    CHECK(pm__tree_book(&profile.tree, node, 0, 10));
    profile.threads[thread].sampled_ns += 10;
  }
  struct pm_view *view = view_of(&profile);
  CHECK_EQ_INT(view->node_count, 1);
  CHECK_EQ_INT(view->nodes[0].total_ns, 30);
  pm__view_free(view);
  pm__profile_free(&profile);
}

static void test_more_threads_than_rows(void) {
  struct pm_profile profile;
  CHECK(pm__profile_init(&profile, 100));
  for (int32_t tid = 1; tid < PM_PROFILE_THREADS_MAX; tid++)
    CHECK_EQ_INT(pm__profile_add_thread(&profile, tid, "t"), tid);
  CHECK_EQ_INT(pm__profile_add_thread(&profile, 99999, "late"), 0);
  pm__profile_free(&profile);
}

int main(void) {
  test_windows_follow_time();
  test_windows_are_joined();
  test_accounts();
  test_view_is_ordered();
  test_recursion_counts_once();
  test_equal_names_are_one_node();
  test_more_threads_than_rows();
  return check_report();
}
