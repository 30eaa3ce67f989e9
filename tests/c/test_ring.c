/* SPDX-License-Identifier: Apache-2.0 */
/* The sample ring: order, wrap-around with padding, that a full one refuses, two threads. */
#include "signal/ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "check.h"

static struct pm_ring make_ring(void) {
  return (struct pm_ring){.bytes = calloc(1, PM_RING_BYTES)};
}

static bool put(struct pm_ring *ring, uint64_t weight, uint16_t natives) {
  struct pm_record *record = pm__ring_reserve(ring);
  if (record == NULL) return false;
  *record = (struct pm_record){.weight = weight, .native_count = natives};
  record->size = (uint32_t)sizeof *record + natives * 16u;
  pm__ring_commit(ring, record);
  return true;
}

static uint64_t take(struct pm_ring *ring) {
  const struct pm_record *record = pm__ring_peek(ring);
  if (record == NULL) return 0;
  uint64_t weight = record->weight;
  pm__ring_pop(ring, record);
  return weight;
}

static void test_order_and_wrap(void) {
  struct pm_ring ring = make_ring();
  uint64_t written = 0, seen = 0;
  for (int round = 0; round < 2000; round++) {
    for (int i = 0; i < 5; i++) CHECK(put(&ring, ++written, (uint16_t)(round * 7 % 256)));
    for (int i = 0; i < 5; i++) CHECK_EQ_INT(take(&ring), ++seen);
    CHECK(pm__ring_peek(&ring) == NULL);
  }
  free(ring.bytes);
}

static void test_full(void) {
  struct pm_ring ring = make_ring();
  uint64_t written = 0, seen = 0;
  while (put(&ring, written + 1, PM_NATIVE_FRAMES)) written++;
  CHECK(written >= 15); /* the collector's pace counts on that many of the largest */
  while (take(&ring) != 0) seen++;
  CHECK_EQ_INT(seen, written);
  CHECK(put(&ring, 1, 10));
  CHECK_EQ_INT(take(&ring), 1);
  free(ring.bytes);
}

static void test_records_stay_inside(void) {
  struct pm_ring ring = make_ring();
  for (int i = 0; i < 500; i++) {
    struct pm_record *record = pm__ring_reserve(&ring);
    CHECK(record != NULL);
    CHECK((uint8_t *)record + PM_RECORD_MAX <= ring.bytes + PM_RING_BYTES);
    record->flags = 0;
    record->size = PM_RECORD_MAX - 8u * (unsigned)(i % 100);
    pm__ring_commit(&ring, record);
    pm__ring_pop(&ring, pm__ring_peek(&ring));
  }
  free(ring.bytes);
}

static void test_without_buffer(void) {
  struct pm_ring ring = {0};
  CHECK(pm__ring_reserve(&ring) == NULL);
  CHECK(pm__ring_peek(&ring) == NULL);
}

enum { PASSED_ON = 20000 };

static void *produce(void *ring) {
  for (uint64_t i = 1; i <= PASSED_ON; i++) {
    while (!put(ring, i, (uint16_t)(i % 200))) sched_yield();
  }
  return NULL;
}

/* The handler on one processor, the collector on another: no record early, lost or torn. */
static void test_two_threads(void) {
  struct pm_ring ring = make_ring();
  pthread_t producer;
  CHECK(pthread_create(&producer, NULL, produce, &ring) == 0);
  uint64_t wrong = 0;
  for (uint64_t i = 1; i <= PASSED_ON;) {
    const struct pm_record *record = pm__ring_peek(&ring);
    if (record == NULL) {
      sched_yield();
      continue;
    }
    wrong += record->weight != i || record->native_count != i % 200;
    pm__ring_pop(&ring, record);
    i++;
  }
  pthread_join(producer, NULL);
  CHECK_EQ_INT(wrong, 0);
  CHECK(pm__ring_peek(&ring) == NULL);
  free(ring.bytes);
}

int main(void) {
  test_two_threads();
  test_order_and_wrap();
  test_full();
  test_records_stay_inside();
  test_without_buffer();
  return check_report();
}
