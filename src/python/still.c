/* SPDX-License-Identifier: Apache-2.0 */
/* See still.h. */
#include "python/still.h"

#include <string.h>
#include <sys/mman.h>

#include "python/late.h"
#include "python/seed.h"
#include "python/state.h"

enum { THREADS_MAX = 256, FRAMES_MAX = 1 << 15, STOPS_MAX = 8 };

struct frame {
  PyObject *code, *globals; /* new references, taken in a stop */
};

struct thread {
  unsigned long ident;
  struct pm_shadow *shadow;
  PyObject *frame; /* its innermost one just before the stop; owned */
  uint32_t first, count; /* in `frames`; none: not found yet */
  struct pm_seed_walk walk;
};

static struct {
  struct thread threads[THREADS_MAX];
  uint32_t count;
  struct frame frames[FRAMES_MAX]; /* from the leaf outward, one thread after the other */
  uint32_t used;
} *still;

/* Shown on 3.13's free-threaded build; how others stop their threads was not. */
static bool is_known(void) { return strncmp(pm__api.Py_GetVersion(), "3.13.", 5) == 0; }

void pm__still_begin(void) {
  bool there = pm__api.PyUnstable_GC_VisitObjects != NULL &&
               pm__api.PyInterpreterState_ThreadHead != NULL &&
               pm__api.PyThreadState_Next != NULL && pm__api.PyThreadState_GetFrame != NULL;
  if (!there || !is_known()) return;
  void *bytes =
      mmap(NULL, sizeof *still, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes != MAP_FAILED) still = bytes;
}

void pm__still_want(struct pm_shadow *shadow, unsigned long ident) {
  if (still == NULL || still->count == THREADS_MAX) return;
  still->threads[still->count++] = (struct thread){.ident = ident, .shadow = shadow};
}

/* The next frame outward. The reference to `frame` is given back: its thread has one. */
static PyObject *step_out(PyObject *frame) {
  PyObject *back = pm__api.PyFrame_GetBack(frame);
  pm__api.Py_DecRef(frame);
  return back;
}

/* Has it raised an event, or been given a stack? */
static bool is_told(const struct thread *thread) {
  return atomic_load(&thread->shadow->seeded) == atomic_load(&pm__python_session.live);
}

static struct thread *wanted_by_frame(const PyObject *frame) {
  for (uint32_t i = 0; i < still->count; i++) {
    if (still->threads[i].frame == frame) return &still->threads[i];
  }
  return NULL;
}

/* In a stop, as all below: the thread whose innermost frame is `frame`, if it is wanted. */
static struct thread *thread_of(PyObject *frame) {
  struct thread *thread = NULL;
  pm__api.Py_IncRef(frame);
  while (frame != NULL && thread == NULL) {
    thread = wanted_by_frame(frame);
    frame = step_out(frame);
  }
  pm__api_release(frame);
  return thread;
}

/* Notes what all its frames run, unless there is no room. */
static void note_thread(struct thread *thread, PyObject *frame) {
  uint32_t at = still->used;
  thread->count = 0;
  pm__api.Py_IncRef(frame);
  while (frame != NULL && at < FRAMES_MAX) {
    still->frames[at++] = (struct frame){.code = pm__api.PyFrame_GetCode(frame),
                                         .globals = pm__api.PyFrame_GetGlobals(frame)};
    frame = step_out(frame);
  }
  thread->first = still->used;
  if (frame == NULL) thread->count = at - still->used;
  pm__api_release(frame);
  still->used = at;
}

/* Do all its frames run what they ran? */
static bool is_where_it_was(const struct thread *thread, PyObject *frame) {
  uint32_t at = 0;
  bool same = thread->count > 0;
  pm__api.Py_IncRef(frame);
  while (frame != NULL) {
    PyObject *code = pm__api.PyFrame_GetCode(frame);
    same = same && at < thread->count && still->frames[thread->first + at].code == code;
    pm__api.Py_DecRef(code);
    at++;
    frame = step_out(frame);
  }
  return same && at == thread->count;
}

/* Gives a thread that is where it was its stack; of any other notes where it is now. */
static void seed_or_note(struct thread *thread, PyObject *frame) {
  if (is_where_it_was(thread, frame)) {
    pm__seed_other(thread->shadow, &thread->walk);
  } else {
    note_thread(thread, frame);
  }
}

static void visit(void *state) {
  PyObject *frame = pm__api.PyThreadState_GetFrame(state);
  struct thread *thread = frame == NULL ? NULL : thread_of(frame);
  if (thread != NULL && !is_told(thread)) seed_or_note(thread, frame);
  pm__api_release(frame);
}

/*
 * Called for one object, which does not matter. In the middle of an event's cold path
 * a shadow may be half made. Returns 0: one call is enough.
 */
static int in_stop(PyObject *object, void *context) {
  (void)object, (void)context;
  if (atomic_load(&pm__python_session.cold) > 0) return 0;
  void *state = pm__api.PyInterpreterState_ThreadHead(pm__api.PyInterpreterState_Main());
  for (; state != NULL; state = pm__api.PyThreadState_Next(state)) visit(state);
  return 0;
}

/* Takes their innermost frames, to tell them by. False: no thread is left to look for. */
static bool look(void) {
  bool any = false;
  PyObject *frames = pm__late_frames();
  for (uint32_t i = 0; frames != NULL && i < still->count; i++) {
    struct thread *thread = &still->threads[i];
    pm__api_release(thread->frame);
    thread->frame = is_told(thread) ? NULL : pm__late_frame(frames, thread->ident);
    any = any || thread->frame != NULL;
  }
  pm__api_release(frames);
  return any;
}

static void register_codes(struct pm_python_thread *self, struct thread *thread) {
  thread->walk.total = 0;
  for (uint32_t i = 0; i < thread->count; i++) {
    const struct frame *frame = &still->frames[thread->first + i];
    pm__seed_note(&thread->walk, pm__seed_entry_in(self, frame->code, frame->globals));
  }
}

static void drop_references(void) {
  for (uint32_t i = 0; i < still->count; i++) pm__api_release(still->threads[i].frame);
  for (uint32_t i = 0; i < still->used; i++) {
    pm__api.Py_DecRef(still->frames[i].code);
    pm__api.Py_DecRef(still->frames[i].globals);
  }
}

/* The first stop finds where the threads are, the second one leaves their stacks. */
void pm__still_seed(struct pm_python_thread *self) {
  if (still == NULL) return;
  for (int i = 0; i < STOPS_MAX && look(); i++) {
    pm__api.PyUnstable_GC_VisitObjects(in_stop, NULL);
    for (uint32_t t = 0; t < still->count; t++) register_codes(self, &still->threads[t]);
  }
  drop_references();
  munmap(still, sizeof *still);
  still = NULL;
}
