/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's table of code objects: nothing is lost while it grows, and it has an end. */
#include "check.h"
#include "python/entries.h"

enum { MANY = 20000, CODE_SIZE = 240 };

static char codes[MANY][CODE_SIZE]; /* stand for code objects: only their addresses count */

static void add(struct pm_entries *entries, uint32_t i) {
  CHECK(pm__entries_find(entries, codes[i]) == NULL);
  struct pm_code_entry *entry = pm__entries_add(entries, codes[i]);
  CHECK(entry->code == codes[i]);
  CHECK_EQ_INT(entry->id, 0);
  entry->id = i + 1;
  entry->span = 3 * i;
}

/* As many as it is made for: each is found as it was put in, and most at their first place. */
static void test_growing(void) {
  enum { ALL = PM_ENTRIES_MAX / PM_ENTRIES_SPARE };
  struct pm_entries entries;
  uint32_t first = 0;
  CHECK(pm__entries_make(&entries));
  for (uint32_t i = 0; i < ALL; i++) add(&entries, i);
  for (uint32_t i = 0; i < ALL; i++) {
    const struct pm_code_entry *entry = pm__entries_find(&entries, codes[i]);
    CHECK(entry != NULL && entry->id == i + 1 && entry->span == 3 * i);
    first += entry == pm__entries_first(&entries, codes[i]);
  }
  CHECK_EQ_INT(entries.mask + 1, PM_ENTRIES_MAX);
  CHECK(first > ALL * 8 / 10);
  pm__entries_clear(&entries);
  for (uint32_t i = 0; i < ALL; i++) CHECK(pm__entries_find(&entries, codes[i]) == NULL);
  pm__entries_free(&entries);
}

/* Beyond that it does not grow. What was put in last is there; what is found is right. */
static void test_bound(void) {
  struct pm_entries entries;
  uint32_t found = 0;
  CHECK(pm__entries_make(&entries));
  for (uint32_t i = 0; i < MANY; i++) {
    add(&entries, i);
    const struct pm_code_entry *entry = pm__entries_find(&entries, codes[i]);
    CHECK(entry != NULL && entry->id == i + 1);
  }
  for (uint32_t i = 0; i < MANY; i++) {
    const struct pm_code_entry *entry = pm__entries_find(&entries, codes[i]);
    if (entry != NULL) CHECK_EQ_INT(entry->id, i + 1);
    found += entry != NULL;
  }
  CHECK_EQ_INT(entries.mask + 1, PM_ENTRIES_MAX);
  CHECK(found > PM_ENTRIES_MAX / 2 && found <= PM_ENTRIES_MAX + PM_ENTRIES_PROBES);
  pm__entries_free(&entries);
}

int main(void) {
  test_growing();
  test_bound();
  return check_report();
}
