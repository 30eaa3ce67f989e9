/* SPDX-License-Identifier: Apache-2.0 */
/* The code registry: address to id under a mutex, id to record without one. */
#include "python/codes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "python/category.h"
#include "python/greenlets.h"
#include "python/intern.h"
#include "python/python.h"

enum { CHUNK = 256, CHUNKS = PM_CODES_MAX / CHUNK + 1, FIRST_SLOTS = 4096 };

struct slot {
  PyObject *code; /* NULL: free */
  uint32_t id;
};

/*
 * Owner:    `lock`, held for pure C only: never while Python is called.
 * Readers:  pm__code_info and pm__code_count, without the lock.
 * Ordering: a record is written, then its chunk's pointer, then `count` with
 *           release; readers load `count` with acquire first.
 */
static struct {
  pthread_mutex_t lock;
  struct slot *slots; /* open addressing, at most half full */
  uint32_t slot_count;
  bool closed; /* a registration failed: no new codes until cleared */
  struct pm_intern text;
  _Atomic uint32_t count;
  _Atomic uint64_t refused;
  _Atomic(struct pm_code *) chunks[CHUNKS];
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The strings of a code, fetched before the lock is taken. */
struct names {
  char file[PM_INTERN_MAX];
  char module[PM_INTERN_MAX];
  char name[PM_INTERN_MAX];
  char qualname[PM_INTERN_MAX];
  uint32_t line;
  enum pm_code_category category;
};

static struct slot *find(struct slot *slots, uint32_t count, const PyObject *code) {
  uint64_t hash = (uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15);
  uint32_t at = (uint32_t)(hash >> 32) & (count - 1);
  while (slots[at].code != NULL && slots[at].code != code) at = (at + 1) & (count - 1);
  return &slots[at];
}

static bool grow(void) {
  uint32_t used = atomic_load_explicit(&registry.count, memory_order_relaxed);
  if (used * 2 < registry.slot_count) return true;
  uint32_t wider = registry.slot_count == 0 ? FIRST_SLOTS : registry.slot_count * 2;
  struct slot *slots = calloc(wider, sizeof *slots);
  if (slots == NULL) return false;
  for (uint32_t i = 0; i < registry.slot_count; i++) {
    struct slot slot = registry.slots[i];
    if (slot.code != NULL) *find(slots, wider, slot.code) = slot;
  }
  free(registry.slots);
  registry.slots = slots;
  registry.slot_count = wider;
  return true;
}

static struct pm_code *record_of(uint32_t id) {
  struct pm_code *chunk = atomic_load_explicit(&registry.chunks[id / CHUNK], memory_order_acquire);
  return chunk == NULL ? NULL : &chunk[id % CHUNK];
}

static struct pm_code *make_record(uint32_t id) {
  if (record_of(id) == NULL) {
    struct pm_code *chunk = calloc(CHUNK, sizeof *chunk);
    if (chunk == NULL) return NULL;
    atomic_store_explicit(&registry.chunks[id / CHUNK], chunk, memory_order_release);
  }
  return record_of(id);
}

static bool fill(struct pm_code *record, const struct names *names) {
  struct pm_intern *text = &registry.text;
  record->file = pm__intern_keep(text, names->file);
  record->module = pm__intern_keep(text, names->module);
  record->name = pm__intern_keep(text, names->name);
  record->qualname = pm__intern_keep(text, names->qualname);
  record->line = names->line;
  record->category = names->category;
  return record->file != NULL && record->module != NULL && record->name != NULL &&
         record->qualname != NULL;
}

/* Under the lock. The id, and whether the registry has taken the caller's reference. */
static uint32_t insert(PyObject *code, const struct names *names, bool *taken) {
  uint32_t id = atomic_load_explicit(&registry.count, memory_order_relaxed) + 1;
  if (registry.closed || id > PM_CODES_MAX) return 0;
  bool grown = grow();
  struct slot *slot = grown ? find(registry.slots, registry.slot_count, code) : NULL;
  if (slot != NULL && slot->code != NULL) return slot->id; /* another thread was first */
  struct pm_code *record = slot == NULL ? NULL : make_record(id);
  if (record == NULL || !fill(record, names)) {
    registry.closed = true;
    return 0;
  }
  *slot = (struct slot){code, id};
  *taken = true;
  atomic_store_explicit(&registry.count, id, memory_order_release);
  return id;
}

/* Known already, or refused without asking Python anything? */
static bool look_up(const PyObject *code, uint32_t *id) {
  pthread_mutex_lock(&registry.lock);
  struct slot *slot =
      registry.slot_count == 0 ? NULL : find(registry.slots, registry.slot_count, code);
  *id = slot != NULL && slot->code != NULL ? slot->id : 0;
  bool full = atomic_load_explicit(&registry.count, memory_order_relaxed) >= PM_CODES_MAX;
  bool settled = *id != 0 || registry.closed || full;
  pthread_mutex_unlock(&registry.lock);
  return settled;
}

uint32_t pm__codes_find(const void *code) {
  uint32_t id = 0;
  look_up(code, &id);
  return id;
}

static void text_attribute(PyObject *object, const char *attribute, char out[PM_INTERN_MAX]) {
  PyObject *value = pm__api_attribute(object, attribute);
  pm__api_text(value, out, PM_INTERN_MAX);
  pm__api_release(value);
}

/* The module is where the function's globals are, which the code object does not know. */
static void module_of_globals(PyObject *globals, char out[PM_INTERN_MAX]) {
  out[0] = '\0';
  PyObject *name = pm__api_dict_get_string(globals, "__name__");
  pm__api_text(name, out, PM_INTERN_MAX);
  pm__api_release(name);
}

/* Code that no frame runs (Cython's): "folder/thing.pyx" is most likely the module `thing`. */
static void module_of_file(const char *file, char out[PM_INTERN_MAX]) {
  const char *slash = strrchr(file, '/');
  const char *name = slash == NULL ? file : slash + 1;
  size_t size = *name == '<' ? 0 : strcspn(name, ".");
  memcpy(out, name, size);
  out[size] = '\0';
}

static void read_names(PyObject *code, PyObject *globals, struct names *names) {
  text_attribute(code, "co_filename", names->file);
  text_attribute(code, "co_name", names->name);
  text_attribute(code, "co_qualname", names->qualname);
  if (globals != NULL) {
    module_of_globals(globals, names->module);
  } else {
    module_of_file(names->file, names->module);
  }
  names->line = (uint32_t)pm__api_integer_attribute(code, "co_firstlineno", 0);
  names->category = pm__category_of(names->file);
  if (names->qualname[0] == '\0') memcpy(names->qualname, names->name, sizeof names->name);
}

uint32_t pm__codes_id(PyObject *code, PyObject *globals) {
  uint32_t id = 0;
  if (!look_up(code, &id)) {
    struct names names;
    bool taken = false;
    read_names(code, globals, &names);
    pm__api.Py_IncRef(code); /* before others can find it */
    pthread_mutex_lock(&registry.lock);
    id = insert(code, &names, &taken);
    pthread_mutex_unlock(&registry.lock);
    if (!taken) pm__api.Py_DecRef(code);
    pm__greenlets_notice(names.module);
  }
  if (id == 0) atomic_fetch_add_explicit(&registry.refused, 1, memory_order_relaxed);
  return id;
}

uint64_t pm__codes_refused(void) {
  return atomic_load_explicit(&registry.refused, memory_order_relaxed);
}

void pm__codes_clear(bool release) {
  pthread_mutex_lock(&registry.lock);
  struct slot *slots = registry.slots;
  uint32_t slot_count = registry.slot_count;
  registry.slots = NULL;
  registry.slot_count = 0;
  registry.closed = false;
  atomic_store_explicit(&registry.count, 0, memory_order_release);
  atomic_store_explicit(&registry.refused, 0, memory_order_relaxed);
  for (uint32_t i = 0; i < CHUNKS; i++) {
    free(atomic_exchange_explicit(&registry.chunks[i], NULL, memory_order_acq_rel));
  }
  pm__intern_free(&registry.text);
  pthread_mutex_unlock(&registry.lock);
  for (uint32_t i = 0; release && i < slot_count; i++) pm__api_release(slots[i].code);
  free(slots);
}

void pm__codes_orphan(void) {
  pthread_mutex_lock(&registry.lock);
  free(registry.slots);
  registry.slots = NULL;
  registry.slot_count = 0;
  registry.closed = true; /* ids stay readable, new ones would need a new interpreter */
  pthread_mutex_unlock(&registry.lock);
}

void pm__codes_forked(void) {
  registry.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  registry.slots = NULL;
  registry.slot_count = 0;
  registry.closed = true;
  registry.text = (struct pm_intern){0};
  atomic_store_explicit(&registry.count, 0, memory_order_relaxed);
  for (uint32_t i = 0; i < CHUNKS; i++) {
    atomic_store_explicit(&registry.chunks[i], NULL, memory_order_relaxed);
  }
}

const struct pm_code *pm__code_info(uint32_t id) {
  if (id == 0 || id > pm__code_count()) return NULL;
  return record_of(id);
}

uint32_t pm__code_count(void) {
  return atomic_load_explicit(&registry.count, memory_order_acquire);
}
