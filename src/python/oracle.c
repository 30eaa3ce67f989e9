/* SPDX-License-Identifier: Apache-2.0 */
/* Its walk shares no code with seed.c, whose work it judges. */
#include "python/oracle.h"

#include <pthread.h>
#include <stdlib.h>

#include "python/codes.h"
#include "python/local.h"
#include "python/oracle_text.h"
#include "python/oracle_trail.h"
#include "python/state.h"

enum { STUBS = 1024 };

/* Frames of one thread, innermost first. */
struct truth {
  const void **codes;
  uint32_t count, capacity;
};

/* What one thread is in the middle of. */
struct check {
  bool chosen;
  bool unseen; /* the thread was not shown at all before: no error there */
  bool before; /* shown was true before the event */
  bool frameless;
  uint32_t live; /* the session it belongs to */
  uint64_t random;
  struct truth truth;
};
static __thread struct check check;

static struct {
  pthread_once_t once;
  uint64_t one_in; /* 0: off */
  bool plant; /* make errors, to show that they are found */
  _Atomic uint64_t threads, events, compared, different, frameless;
  _Atomic uint64_t healed[PM_EVENT_KINDS];
  _Atomic uint32_t stubs; /* codes seen in frameless events; slots beyond are not written yet */
  _Atomic(const void *) stub[STUBS];
} oracle = {.once = PTHREAD_ONCE_INIT};

static void read_environment(void) {
  const char *text = getenv("PYROMETER_ORACLE");
  if (text != NULL) oracle.one_in = strtoull(text, NULL, 10);
  oracle.plant = getenv("PYROMETER_ORACLE_PLANT") != NULL;
}

static void add(_Atomic uint64_t *counter) {
  atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* xorshift64*; each thread begins elsewhere, the same in every run. */
static bool choose(void) {
  if (check.random == 0) {
    check.random = UINT64_C(0x9E3779B97F4A7C15) * (atomic_fetch_add(&oracle.threads, 1) + 1);
  }
  check.random ^= check.random >> 12;
  check.random ^= check.random << 25;
  check.random ^= check.random >> 27;
  return (check.random * UINT64_C(0x2545F4914F6CDD1D) >> 32) % oracle.one_in == 0;
}

static bool is_stub(const void *code) {
  uint32_t count = atomic_load(&oracle.stubs);
  for (uint32_t i = 0; i < count && i < STUBS; i++) {
    if (atomic_load(&oracle.stub[i]) == code) return true;
  }
  return false;
}

/* Kept alive by the registry, so an address keeps its meaning while a session lasts. */
static void learn_stub(const void *code) {
  add(&oracle.frameless);
  if (is_stub(code) || atomic_load(&oracle.stubs) >= STUBS) return;
  uint32_t at = atomic_fetch_add(&oracle.stubs, 1);
  if (at < STUBS) atomic_store(&oracle.stub[at], code);
}

static bool note(struct truth *truth, const void *code) {
  if (truth->count == truth->capacity) {
    uint32_t wider = truth->capacity == 0 ? 256 : truth->capacity * 2;
    const void **codes = realloc(truth->codes, wider * sizeof *codes);
    if (codes == NULL) return false;
    truth->codes = codes;
    truth->capacity = wider;
  }
  truth->codes[truth->count++] = code;
  return true;
}

static bool walk(struct truth *truth) {
  PyObject *frame = pm__api.PyEval_GetFrame(); /* borrowed */
  bool whole = true;
  truth->count = 0;
  if (frame != NULL) pm__api.Py_IncRef(frame);
  while (frame != NULL) {
    PyObject *code = pm__api.PyFrame_GetCode(frame);
    if (!is_stub(code)) whole = note(truth, code) && whole;
    PyObject *back = pm__api.PyFrame_GetBack(frame);
    pm__api.Py_DecRef(code); /* its frame stands, and holds it */
    pm__api.Py_DecRef(frame);
    frame = back;
  }
  return whole;
}

static struct pm_shadow *shown_shadow(uint32_t live) {
  struct pm_python_thread *thread = pm__local_self;
  bool ours = thread != NULL && live != 0 && thread->session == live;
  return ours ? thread->shadow : NULL;
}

/* Takes frameless codes out of what is shown. False: something is left out in the middle already. */
static bool drop_stubs(struct pm_oracle_shown *shown) {
  uint32_t stubs = atomic_load(&oracle.stubs), kept = 0;
  if (stubs == 0) return true;
  for (uint32_t i = 0; i < shown->count; i++) {
    bool stub = false;
    for (uint32_t j = 0; j < stubs && j < STUBS; j++) {
      uint32_t id = pm__codes_find(atomic_load(&oracle.stub[j]));
      stub = stub || (id != 0 && id == shown->frames[i].code);
    }
    if (!stub) shown->frames[kept++] = shown->frames[i];
  }
  shown->count = kept;
  if (shown->split > kept) shown->split = kept;
  return shown->skipped == 0;
}

/* The true stack without its `without` innermost frames against the one shown. */
static bool equal(const struct pm_oracle_shown *shown, const struct truth *truth,
                  uint32_t without) {
  if (truth->count < without) return false;
  uint32_t depth = truth->count - without;
  if (depth != shown->count + shown->skipped) return false;
  for (uint32_t i = 0; i < shown->count; i++) {
    uint32_t at = i < shown->split ? i : i + shown->skipped;
    if (shown->frames[i].code != pm__codes_find(truth->codes[truth->count - 1 - at])) return false;
  }
  return true;
}

static bool show(uint32_t live, struct pm_oracle_shown *shown) {
  struct pm_shadow *shadow = shown_shadow(live);
  return shadow != NULL &&
         pm__shadow_copy(shadow, shown->frames, &shown->count, &shown->split, &shown->skipped);
}

static bool is_seeded(uint32_t live) {
  struct pm_shadow *shadow = shown_shadow(live);
  return shadow != NULL && atomic_load(&shadow->seeded) == live;
}

static bool is_entering(enum pm_event kind) { return kind <= PM_EVENT_THROW; }

static bool innermost_is(const struct pm_oracle_shown *shown, const void *code) {
  return shown->count > 0 && shown->frames[shown->count - 1].code == pm__codes_find(code);
}

/* `without`: how many innermost true frames are not to be shown. */
static bool agrees(struct pm_oracle_shown *shown, const void *code, bool on_top) {
  if (on_top && check.frameless && !innermost_is(shown, code)) return false;
  if (!drop_stubs(shown)) return true; /* cannot be told */
  return equal(shown, &check.truth, on_top || check.frameless ? 0 : 1);
}

static void begin(enum pm_event kind, const void *code) {
  struct pm_oracle_shown shown;
  check.frameless = false;
  check.chosen = walk(&check.truth);
  if (check.truth.count == 0 || check.truth.codes[0] != code) {
    check.frameless = true;
    learn_stub(code);
  }
  check.unseen = !is_seeded(check.live);
  check.before =
      !check.unseen && show(check.live, &shown) && agrees(&shown, code, !is_entering(kind));
}

void pm__oracle_before(enum pm_event kind, PyObject *code) {
  pthread_once(&oracle.once, read_environment);
  check.live = atomic_load_explicit(&pm__python_session.live, memory_order_acquire);
  check.chosen = false;
  if (check.live == 0) return;
  add(&oracle.events);
  if (oracle.one_in == 0 || !choose()) return;
  PyObject *exception = pm__api_save_exception();
  begin(kind, code);
  pm__api_restore_exception(exception);
}

static void judge(enum pm_event kind, const void *code, struct pm_oracle_shown *shown) {
  bool entering = is_entering(kind);
  struct pm_oracle_shown copy = *shown; /* `agrees` takes stubs out */
  bool after = agrees(shown, code, entering);
  add(&oracle.compared);
  if (after && !check.before && !check.unseen) add(&oracle.healed[kind]);
  if (after || (!entering && check.before)) return;
  add(&oracle.different);
  pm__oracle_note(kind, check.truth.codes, check.truth.count, &copy);
}

/* Takes a frame away, now and then. */
static void plant(void) {
  struct pm_shadow *shadow = shown_shadow(check.live);
  if (shadow != NULL && check.random % 64 == 0 && pm__stack_depth(shadow) > 0)
    pm__stack_pop(shadow);
}

static void keep(enum pm_event kind, PyObject *const *args, uintptr_t caller) {
  struct pm_shadow *shadow = shown_shadow(check.live);
  if (shadow == NULL) return;
  struct pm_oracle_step step = {.kind = kind,
                                .code = args[0],
                                .offset = pm__api.PyLong_AsLong(args[1]),
                                .caller = caller,
                                .depth = pm__stack_depth(shadow),
                                .top = pm__local_outer(pm__local_self)};
  pm__oracle_trail_add(step);
}

void pm__oracle_after(enum pm_event kind, PyObject *const *args, uintptr_t caller) {
  struct pm_oracle_shown shown;
  keep(kind, args, caller);
  if (!check.chosen) return;
  check.chosen = false;
  if (oracle.plant) plant();
  /* Another thread may have stopped the session meanwhile, where there is no GIL. */
  uint32_t live = atomic_load_explicit(&pm__python_session.live, memory_order_acquire);
  if (live == check.live && is_seeded(live) && show(live, &shown)) judge(kind, args[0], &shown);
}

bool pm__oracle_facts(struct pm_oracle_facts *facts) {
  *facts = (struct pm_oracle_facts){
      .events = atomic_load(&oracle.events),
      .compared = atomic_load(&oracle.compared),
      .different = atomic_load(&oracle.different),
      .frameless = atomic_load(&oracle.frameless),
  };
  for (int kind = 0; kind < PM_EVENT_KINDS; kind++) {
    facts->healed[kind] = atomic_load(&oracle.healed[kind]);
  }
  pm__oracle_examples(facts->examples);
  return true;
}
