/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects met by many threads at once: each gets one id, its names are whole, and
 * counts of calls add up while others read them. The interpreter is a stand-in.
 */
#include "python/codes.h"

#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "python/local.h"
#include "python/python.h"

enum { CODES = 3000, THREADS = 8, CALLS = 3 };

/* What stands in for a code object, a string, an int. */
struct fake {
  _Atomic int references;
  char text[32];
  long number;
};

static struct fake codes[CODES];
static _Atomic uint32_t first_id[CODES];
static _Atomic bool reading_over;

static PyObject *fake_text(const char *text) {
  struct fake *fake = calloc(1, sizeof *fake);
  if (fake == NULL) abort();
  fake->references = 1;
  snprintf(fake->text, sizeof fake->text, "%s", text);
  return (PyObject *)(void *)fake;
}

static struct fake *as_fake(PyObject *object) { return (struct fake *)(void *)object; }

static void fake_hold(PyObject *object) { atomic_fetch_add(&as_fake(object)->references, 1); }

static void fake_release(PyObject *object) {
  struct fake *fake = as_fake(object);
  if (atomic_fetch_sub(&fake->references, 1) == 1 && (fake < codes || fake >= codes + CODES)) {
    free(fake);
  }
}

/* Every attribute of code N is called after it: "co_name 17". */
static PyObject *fake_attribute(PyObject *object, PyObject *name) {
  PyObject *value = fake_text(as_fake(name)->text);
  size_t size = strlen(as_fake(value)->text);
  long number = as_fake(object)->number;
  snprintf(as_fake(value)->text + size, sizeof as_fake(value)->text - size, " %ld", number);
  as_fake(value)->number = number;
  return value;
}

static const char *fake_utf8(PyObject *object, Py_ssize_t *size) {
  *size = (Py_ssize_t)strlen(as_fake(object)->text);
  return as_fake(object)->text;
}

static long fake_number(PyObject *object) { return as_fake(object)->number; }

static void fake_clear(void) {}

static void stand_in(void) {
  pm__api.Py_IncRef = fake_hold;
  pm__api.Py_DecRef = fake_release;
  pm__api.PyUnicode_FromString = fake_text;
  pm__api.PyObject_GenericGetAttr = fake_attribute;
  pm__api.PyUnicode_AsUTF8AndSize = fake_utf8;
  pm__api.PyLong_AsLong = fake_number;
  pm__api.PyErr_Clear = fake_clear;
}

static PyObject *code(uint32_t index) { return (PyObject *)(void *)&codes[index]; }

/* Each thread meets all codes, from a place of its own on. */
static void *meet(void *argument) {
  uint32_t begin = (uint32_t)(uintptr_t)argument * (CODES / THREADS);
  uintptr_t wrong = 0;
  struct pm_python_thread *self = pm__local_own();
  for (uint32_t i = 0; i < CODES; i++) {
    uint32_t index = (begin + i) % CODES, none = 0;
    uint32_t id = pm__codes_id(code(index), NULL);
    bool first = atomic_compare_exchange_strong(&first_id[index], &none, id);
    wrong += id == 0 || (!first && none != id);
    for (int call = 0; call < CALLS; call++) pm__stack_count(pm__local_cell(self, id));
  }
  return (void *)wrong;
}

static void *read_all(void *argument) {
  uintptr_t torn = 0;
  (void)argument;
  while (!atomic_load(&reading_over)) {
    uint32_t count = pm__code_count();
    for (uint32_t id = 1; id <= count; id += 7) {
      const struct pm_code *found = pm__code_info(id);
      torn += strncmp(found->name, "co_name ", 8) != 0 || pm__code_calls(id) > CALLS * THREADS;
    }
    uint64_t met, missed;
    pm__counters_lookups(&met, &missed);
  }
  return (void *)torn;
}

static void run_threads(void) {
  pthread_t reader, threads[THREADS];
  void *wrong = NULL, *torn = NULL;
  atomic_store(&reading_over, false);
  pthread_create(&reader, NULL, read_all, NULL);
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, meet, (void *)i);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &wrong);
    CHECK_EQ_INT((uintptr_t)wrong, 0);
  }
  atomic_store(&reading_over, true);
  pthread_join(reader, &torn);
  CHECK_EQ_INT((uintptr_t)torn, 0);
}

static void check_codes(void) {
  CHECK_EQ_INT(pm__code_count(), CODES);
  CHECK_EQ_INT(pm__codes_refused(), 0);
  for (uint32_t i = 0; i < CODES; i++) {
    char name[64];
    const struct pm_code *found = pm__code_info(first_id[i]);
    snprintf(name, sizeof name, "co_name %u", i);
    CHECK_EQ_STR(found->name, name);
    CHECK_EQ_INT(found->line, i);
    CHECK_EQ_INT(pm__code_calls(first_id[i]), CALLS * THREADS);
    CHECK_EQ_INT(codes[i].references, 2); /* its own and the registry's */
    CHECK_EQ_INT(pm__codes_find(code(i)), first_id[i]);
  }
}

/* Twice: a registry that was cleared is as good as new, and lets go of what it kept. */
static void test_many_threads(void) {
  for (int round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < CODES; i++) first_id[i] = 0;
    run_threads();
    check_codes();
    pm__codes_clear(true);
    pm__counters_reset();
    CHECK_EQ_INT(pm__code_count(), 0);
    CHECK_EQ_INT(codes[CODES - 1].references, 1);
  }
}

int main(void) {
  for (uint32_t i = 0; i < CODES; i++) codes[i] = (struct fake){.references = 1, .number = (long)i};
  stand_in();
  test_many_threads();
  return check_report();
}
