/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector may not wait for the GIL, so it asks the main thread by
 * Py_AddPendingCall. A main thread that waits in C for others to end never answers;
 * then a thread is made for the purpose that takes the GIL and ends.
 */
#include "python/arrival.h"

#include <pthread.h>
#include <unistd.h>

#include "base/thread.h"
#include "python/api.h"
#include "python/state.h"

enum {
  PATIENCE_MS = 100, /* with the main thread */
  AGAIN_MS = 50,
  LOOK_MS = 1000, /* for an interpreter that may appear: a look goes through all objects */
};

/*
 * Owner:    the collector; `wanted` also whoever answers, or ends the session.
 * Readers:  the main thread and the guest.
 * Ordering: `let_in` is written before `wanted`; sequentially consistent.
 */
static struct {
  pm_arrival let_in;
  uint32_t requests;       /* made so far */
  _Atomic uint32_t wanted; /* number of the request that stands, 0: none */
  _Atomic bool asked;      /* a pending call is under way */
  _Atomic bool guest;      /* a thread is under way */
  uint64_t asked_at, next;
  _Atomic(pid_t) forking; /* who asked for its child to begin */
} arrival;

static void arrive(bool guest) {
  uint32_t request = atomic_load(&arrival.wanted);
  if (request == 0 || !pm__api_usable() || !arrival.let_in(guest)) return;
  atomic_compare_exchange_strong(&arrival.wanted, &request, 0);
}

static int answer(void *context) {
  (void)context;
  atomic_store(&arrival.asked, false);
  arrive(false);
  return 0;
}

/* When Python ends meanwhile, CPython lets this thread wait for ever or ends it: both are fine. */
static void *be_guest(void *context) {
  if (pm__api_usable()) {
    int gil = pm__api.PyGILState_Ensure();
    arrive(true);
    pm__api.PyGILState_Release(gil);
  }
  atomic_store(&arrival.guest, false);
  return context;
}

static void send_guest(void) {
  pthread_t thread;
  if (atomic_exchange(&arrival.guest, true)) return;
  if (pm__thread_start(&thread, be_guest, NULL) == 0) {
    pthread_detach(thread);
  } else {
    atomic_store(&arrival.guest, false);
  }
}

static bool is_found(void) { return pm__api.Py_IsInitialized != NULL; }

static void look(void) {
  if (!is_found()) pm__api_load();
}

void pm__arrival_glance(void) {
  if (!is_found() && pm__api_is_global()) pm__api_load();
}

void pm__arrival_begin(pm_arrival let_in) {
  look();
  arrival.next = 0;
  arrival.let_in = let_in;
  if (++arrival.requests == 0) arrival.requests = 1; /* 0 means none */
  atomic_store(&arrival.wanted, arrival.requests);
}

void pm__arrival_end(void) { atomic_store(&arrival.wanted, 0); }

bool pm__arrival_is_wanted(void) { return atomic_load(&arrival.wanted) != 0; }

bool pm__arrival_is_near(void) { return pm__arrival_is_wanted() && is_found() && pm__api_usable(); }

static void ask(uint64_t now) {
  if (pm__api.Py_AddPendingCall == NULL) return;
  arrival.asked_at = now;
  if (atomic_exchange(&arrival.asked, true)) return;
  if (pm__api.Py_AddPendingCall(answer, NULL) != 0) atomic_store(&arrival.asked, false);
}

void pm__arrival_round(uint64_t now) {
  if (!pm__arrival_is_wanted()) return;
  bool asked = atomic_load(&arrival.asked);
  if (asked && now - arrival.asked_at > PATIENCE_MS * UINT64_C(1000000)) send_guest();
  if (asked || now < arrival.next) return;
  look();
  bool near = pm__arrival_is_near();
  arrival.next = now + (is_found() ? AGAIN_MS : LOOK_MS) * UINT64_C(1000000);
  if (near) ask(now);
}

static int answer_in_child(void *context) {
  (void)context;
  if (getpid() == atomic_load(&arrival.forking)) return 0;
  const struct pm_python_hooks *hooks = &pm__python_session.hooks;
  bool begun = atomic_load(&pm__python_session.live) != 0;
  if (!begun && hooks->in_forked_child != NULL && pm__api_usable()) hooks->in_forked_child();
  return 0;
}

void pm__arrival_before_fork(void) {
  if (pm__api.Py_AddPendingCall == NULL || !pm__api_usable()) return;
  atomic_store(&arrival.forking, getpid());
  pm__api.Py_AddPendingCall(answer_in_child, NULL);
}

void pm__arrival_forked(void) {
  atomic_store(&arrival.wanted, 0);
  atomic_store(&arrival.asked, false);
  atomic_store(&arrival.guest, false);
}
