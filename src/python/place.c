/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any code may free our tool id, take it, or change its events. From 3.14 on,
 * freeing an id drops its callbacks at once, and the canary among them tells
 * (monitoring.c). Up to 3.13 our events go on until somebody else uses the id; that,
 * and set_events by strangers, is seen by looking now and then. The collector may not
 * wait for the GIL, so it has the interpreter's main thread look.
 */
#include "python/place.h"

#include "python/api.h"
#include "python/jit.h"
#include "python/monitoring.h"
#include "python/state.h"

enum { WATCH_MS = 50 };

/*
 * Owner:    `asked` and `next`: the collector asks, the main thread answers. The
 *           loss: whoever finds it first, with the GIL.
 * Readers:  whoever writes diagnostics.
 * Ordering: `lost_ns` is written before `lost`, with release.
 */
static struct {
  _Atomic uint32_t asked;
  uint64_t next;
  _Atomic(const char *) lost; /* the reason */
  _Atomic uint64_t lost_ns;
} place;

static void lose(const char *reason) {
  bool running = pm__python_is_attached();
  pm__python_go_off();
  if (!running || !pm__api_usable()) return;
  atomic_store(&place.lost_ns, pm__clock_monotonic());
  atomic_store_explicit(&place.lost, reason, memory_order_release);
}

static const char taken[] = "the program took our sys.monitoring tool id away";

void pm__place_dropped(void) { lose(taken); }

void pm__place_check(void) {
  if (pm__monitoring_tool() < 0 || atomic_load(&pm__python_session.forked)) return;
  if (atomic_load(&pm__python_session.attaching))
    return; /* looked at after `forked`, which attaching clears */
  bool jit = pm__jit_is_on();
  if (pm__python_is_attached() && !jit && pm__monitoring_is_ours()) return;
  lose(jit ? PM_JIT_REASON : taken);
  pm__monitoring_detach();
}

struct pm_place_loss pm__place_loss(void) {
  const char *reason = atomic_load_explicit(&place.lost, memory_order_acquire);
  return (struct pm_place_loss){reason, atomic_load(&place.lost_ns)};
}

void pm__place_forget_loss(void) { atomic_store(&place.lost, NULL); }

void pm__place_forked(void) { atomic_store(&place.asked, 0); }

/* On the main thread, in the main interpreter, between two instructions. */
static int answer(void *context) {
  (void)context;
  atomic_store(&place.asked, 0);
  if (pm__api_usable()) pm__place_check();
  return 0;
}

void pm__python_watch(uint64_t now) {
  if (now < place.next || pm__monitoring_tool() < 0 || !pm__api_usable()) return;
  place.next = now + WATCH_MS * UINT64_C(1000000);
  if (atomic_exchange(&place.asked, 1)) return;
  if (pm__api.Py_AddPendingCall(answer, NULL) != 0) atomic_store(&place.asked, 0);
}
