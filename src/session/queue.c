/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. */
#include "session/queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 4096 }; /* two of the longest reports are 2,200 */

static struct {
  pthread_mutex_t lock;
  struct pm_queue_row *first;
  uint32_t count;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void append(struct pm_queue_row *row) {
  struct pm_queue_row **end = &queue.first;
  while (*end != NULL) end = &(*end)->next;
  row->next = NULL;
  *end = row;
  queue.count++;
}

static struct pm_queue_row *remove_at(struct pm_queue_row **place) {
  struct pm_queue_row *row = *place;
  if (row == NULL) return NULL;
  *place = row->next;
  queue.count--;
  return row;
}

bool pm__queue_put(const char *text, size_t size, json_t *fields, uint64_t deadline) {
  struct pm_queue_row *row = malloc(sizeof *row + size + 1);
  if (row == NULL) return false;
  *row = (struct pm_queue_row){.fields = json_incref(fields), .deadline = deadline, .size = size};
  memcpy(row->text, text, size);
  row->text[size] = '\0';
  pthread_mutex_lock(&queue.lock);
  bool room = queue.count < ROWS_MAX;
  if (room) append(row);
  pthread_mutex_unlock(&queue.lock);
  if (!room) pm__queue_free_row(row);
  return room;
}

struct pm_queue_row *pm__queue_take(void) {
  pthread_mutex_lock(&queue.lock);
  struct pm_queue_row **place = &queue.first;
  while (*place != NULL && (*place)->mark != NULL) place = &(*place)->next;
  struct pm_queue_row *row = remove_at(place);
  pthread_mutex_unlock(&queue.lock);
  return row;
}

void pm__queue_return(struct pm_queue_row *row, const char *mark) {
  row->mark = mark;
  pthread_mutex_lock(&queue.lock);
  append(row);
  pthread_mutex_unlock(&queue.lock);
}

struct pm_queue_row *pm__queue_take_back(uint64_t now) {
  pthread_mutex_lock(&queue.lock);
  struct pm_queue_row **place = &queue.first;
  while (*place != NULL && (*place)->mark == NULL && (*place)->deadline > now) {
    place = &(*place)->next;
  }
  struct pm_queue_row *row = remove_at(place);
  pthread_mutex_unlock(&queue.lock);
  return row;
}

bool pm__queue_has_rows(void) {
  pthread_mutex_lock(&queue.lock);
  const struct pm_queue_row *row = queue.first;
  while (row != NULL && row->mark != NULL) row = row->next;
  pthread_mutex_unlock(&queue.lock);
  return row != NULL;
}

void pm__queue_free_row(struct pm_queue_row *row) {
  json_decref(row->fields);
  free(row);
}

/* Another thread may have been in the middle of it: left as it is, unfreed. */
void pm__queue_forked(void) {
  pthread_mutex_init(&queue.lock, NULL);
  queue.first = NULL;
  queue.count = 0;
}
