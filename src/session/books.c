/* SPDX-License-Identifier: Apache-2.0 */
/* See books.h. */
#include "session/books.h"

#include "profile/donors.h"

static struct pm_profile *books[PM_BOOKS];

struct pm_profile *pm__books_profile(uint32_t book) { return books[book]; }

static void open_booking(void *context, struct pm_sampled *sampled) {
  uint32_t book = *(const uint32_t *)context;
  struct pm_booking *booking = &sampled->booking[book];
  *booking = (struct pm_booking){0};
  if (book == PM_BOOK_SESSION) return; /* the sampler's own base is the session's */
  booking->cpu_base = atomic_load(&sampled->cpu_now);
  booking->handler_base = atomic_load(&sampled->thread.handler_ns);
}

void pm__books_open(uint32_t book, struct pm_profile *profile) {
  books[book] = profile;
  pm__sampler_each(open_booking, &book);
}

void pm__books_close(uint32_t book) { books[book] = NULL; }

/* The thread's row in a book, made when needed. */
static uint32_t row_of(struct pm_sampled *sampled, uint32_t book) {
  struct pm_booking *booking = &sampled->booking[book];
  if (booking->row == 0) {
    char name[PM_THREAD_NAME_BYTES];
    pm__sampler_copy_name(sampled, name);
    int32_t tid = atomic_load(&sampled->thread.tid);
    booking->row = pm__profile_add_thread(books[book], tid, name) + 1;
  }
  return booking->row - 1;
}

static uint64_t base_of(const struct pm_sampled *sampled, uint32_t book) {
  uint64_t base = sampled->booking[book].cpu_base;
  return base > sampled->cpu_base ? base : sampled->cpu_base;
}

/* Books the part of a record that was burnt since the book was opened. */
static void book_record(struct pm_sampled *sampled, uint32_t book, const struct pm_record *record,
                        const struct pm_merged *merged) {
  uint64_t base = base_of(sampled, book);
  uint64_t burnt = record->cpu > base ? record->cpu - base : 0;
  uint64_t ns = record->weight < burnt ? record->weight : burnt;
  if (ns > 0) pm__profile_book(books[book], row_of(sampled, book), merged, ns);
}

/* A sample that was taken while events were off. */
static void complete(struct pm_sampled *sampled, uint64_t time, struct pm_merged *merged) {
  char name[PM_THREAD_NAME_BYTES];
  pm__sampler_copy_name(sampled, name);
  pm__donors_take((struct pm_donor_owner){.time = time,
                                          .tid = atomic_load(&sampled->thread.tid),
                                          .pool = pm__donors_pool(name)},
                  merged);
}

static void drain_thread(void *context, struct pm_sampled *sampled) {
  (void)context;
  const struct pm_record *record;
  struct pm_merged merged;
  while ((record = pm__ring_peek(&sampled->thread.ring)) != NULL) {
    pm__profile_merge(record, &merged);
    if (pm__donors_are_on() && merged.stack.interpreted) complete(sampled, record->time, &merged);
    for (uint32_t book = 0; book < PM_BOOKS; book++) {
      if (books[book] != NULL) book_record(sampled, book, record, &merged);
    }
    pm__ring_pop(&sampled->thread.ring, record);
  }
}

void pm__books_drain(void) { pm__sampler_each(drain_thread, NULL); }

/* What the kernel counted for the thread since the book was opened. */
static uint64_t cpu_since(struct pm_sampled *sampled, uint32_t book) {
  uint64_t now = atomic_load(&sampled->cpu_now), base = base_of(sampled, book);
  /* The last sample may be younger than the last scan: all there is of a thread that has ended. */
  uint64_t last = atomic_load(&sampled->thread.last_cpu);
  if (last > now) now = last;
  return now > base ? now - base : 0;
}

struct settling {
  uint32_t book;
  uint64_t slack_ns;
};

/* Threads that used nothing get no row. */
static void settle_thread(void *context, struct pm_sampled *sampled) {
  const struct settling *settling = context;
  uint32_t book = settling->book;
  uint64_t cpu = cpu_since(sampled, book);
  if (cpu == 0 && sampled->booking[book].row == 0) return;
  uint32_t row = row_of(sampled, book);
  struct pm_profile_thread *thread = &books[book]->threads[row];
  if (row != 0) pm__sampler_copy_name(sampled, thread->name);
  thread->reason = pm__sampler_reason(sampled);
  /* Row 0 is shared: its figures add up. */
  uint64_t before = row == 0 ? thread->cpu_ns : 0;
  uint64_t handler = atomic_load(&sampled->thread.handler_ns) - sampled->booking[book].handler_base;
  pm__profile_settle_thread(books[book], row, before + cpu, handler, settling->slack_ns);
}

void pm__books_settle(uint32_t book, uint64_t slack_ns) {
  struct settling settling = {.book = book, .slack_ns = slack_ns};
  if (books[book] != NULL) pm__sampler_each(settle_thread, &settling);
}

static void rename_thread(void *context, struct pm_sampled *sampled) {
  uint32_t book = *(const uint32_t *)context;
  if (sampled->booking[book].row <= 1) return; /* none, or the shared one */
  pm__sampler_copy_name(sampled, books[book]->threads[sampled->booking[book].row - 1].name);
}

void pm__books_rename(uint32_t book) {
  if (books[book] != NULL) pm__sampler_each(rename_thread, &book);
}

static void retire_thread(void *context, struct pm_sampled *sampled) {
  (void)context;
  if (!pm__sampler_is_gone(sampled)) return;
  drain_thread(NULL, sampled);
  for (uint32_t book = 0; book < PM_BOOKS; book++) {
    struct settling settling = {.book = book, .slack_ns = 0};
    if (books[book] == NULL) continue;
    settle_thread(&settling, sampled);
  }
  pm__profile_count(&books[PM_BOOK_SESSION]->ended, &sampled->thread);
  pm__sampler_retire(sampled);
}

void pm__books_retire(void) { pm__sampler_each(retire_thread, NULL); }
