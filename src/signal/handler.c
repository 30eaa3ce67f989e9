/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs when a thread's CPU timer fires: walk the native stack, copy the
 * shadow stack, write one record. Nothing else may be called from here.
 */
#include "signal/handler.h"

#include "signal/gate.h"
#include "signal/walk.h"

struct pm_signal_state pm__signal_state;

/* How far above the stack pointer a walk may probe when the bounds are not known. */
static const uintptr_t unknown_stack_bytes = (uintptr_t)64 << 20;

static void add(_Atomic uint64_t *counter, uint64_t value) {
  atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + value,
                        memory_order_relaxed);
}

static void lose(struct pm_thread *thread, enum pm_lost cause, uint64_t ns) {
  add(&thread->lost[cause], 1);
  add(&thread->lost_ns, ns);
}

static struct pm_stack stack_of(struct pm_thread *thread, uintptr_t sp) {
  uintptr_t lo = atomic_load_explicit(&thread->stack_lo, memory_order_relaxed);
  uintptr_t hi = atomic_load_explicit(&thread->stack_hi, memory_order_relaxed);
  struct pm_stack stack = {.hi = hi, .probe = false};
  if (sp < lo || sp >= hi) {
    atomic_store_explicit(&thread->unknown_sp, sp, memory_order_relaxed);
    stack.hi = sp > UINTPTR_MAX - unknown_stack_bytes ? UINTPTR_MAX - 16 : sp + unknown_stack_bytes;
    stack.probe = true;
  }
  return stack;
}

static void take_native(struct pm_thread *thread, struct pm_record *record, const void *ucontext) {
  /* The CFAs stand behind the pcs: written at full distance, then moved up to the last pc. */
  uint64_t *pcs = (uint64_t *)(void *)(record + 1);
  struct pm_registers registers = pm__cpu_interrupted(ucontext);
  struct pm_walk walk = {.pc = pcs, .cfa = pcs + PM_NATIVE_FRAMES, .capacity = PM_NATIVE_FRAMES};
  const struct pm_tables *tables = pm__tables_acquire(&thread->tables);
  pm__walk_native(tables, thread->cache, registers, stack_of(thread, registers.sp), &walk);
  pm__tables_release(&thread->tables);
  for (uint32_t i = 0; i < walk.count; i++) pcs[walk.count + i] = walk.cfa[i];
  record->native_count = (uint16_t)walk.count;
  record->native_split = (uint16_t)walk.split;
  record->native_skipped = walk.skipped;
  record->flags = walk.flags;
}

static void take_python(struct pm_thread *thread, struct pm_record *record) {
  uint32_t count = 0, split = 0, skipped = 0;
  struct pm_shadow *shadow = thread->shadow;
  if (shadow != NULL) {
    struct pm_shadow_frame *frames = (struct pm_shadow_frame *)(uintptr_t)pm__record_frames(record);
    if (pm__shadow_copy(shadow, frames, &count, &split, &skipped)) {
      record->flags |= PM_RECORD_PYTHON;
    } else {
      record->flags |= PM_RECORD_PYTHON_DROPPED;
      add(&thread->snapshot_failures, 1);
      count = split = skipped = 0;
    }
  }
  record->python_count = (uint16_t)count;
  record->python_split = (uint16_t)split;
  record->python_skipped = skipped;
}

/* Moves the thread's CPU mark to `now`; what lay between is this sample's weight. */
static uint64_t advance(struct pm_thread *thread, uint64_t now) {
  uint64_t last = atomic_load_explicit(&thread->last_cpu, memory_order_relaxed);
  if (now <= last) return 0;
  atomic_store_explicit(&thread->last_cpu, now, memory_order_relaxed);
  return now - last;
}

static void take_sample(struct pm_thread *thread, const void *ucontext) {
  uint64_t now = pm__clock_thread_self();
  uint64_t weight = advance(thread, now);
  if (weight == 0) {
    lose(thread, PM_LOST_NO_TIME, 0);
    return;
  }
  struct pm_record *record = pm__ring_reserve(&thread->ring);
  if (record == NULL) {
    lose(thread, PM_LOST_RING_FULL, weight);
    return;
  }
  take_native(thread, record, ucontext);
  take_python(thread, record);
  record->weight = weight;
  record->cpu = now;
  record->time = pm__clock_monotonic();
  record->size = (uint32_t)(sizeof(struct pm_record) + record->native_count * 16u +
                            record->python_count * sizeof(struct pm_shadow_frame));
  pm__ring_commit(&thread->ring, record);
  add(&thread->stored, 1);
  /* The handler's own time is booked apart, not on whatever it interrupts next. */
  add(&thread->handler_ns, advance(thread, pm__clock_thread_self()));
}

static bool is_block(uintptr_t address) {
  const struct pm_signal_state *state = &pm__signal_state;
  return address >= state->blocks_lo && address < state->blocks_hi &&
         (address - state->blocks_lo) % state->block_size == 0;
}

/* Is the signal one of our timers', and not of a timer that the program made? */
static bool is_ours(const siginfo_t *info) {
  uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
  return info->si_code == SI_TIMER && (value == (uintptr_t)&pm__signal_state || is_block(value));
}

static struct pm_thread *thread_of(const siginfo_t *info, int32_t tid) {
  bool shared = info->si_value.sival_ptr == &pm__signal_state;
  return shared ? pm__thread_find(tid) : info->si_value.sival_ptr;
}

static void lose_unknown(void) {
  bool active = atomic_load(&pm__signal_state.active);
  atomic_fetch_add(&pm__signal_state.lost[active ? PM_LOST_NO_THREAD : PM_LOST_INACTIVE], 1);
}

/* The block is ours and stays so: the sampler takes none back whose in_handler is set. */
static void handle_own(struct pm_thread *thread, bool alone, const void *ucontext) {
  add(&thread->signals, 1);
  if (!alone) {
    lose(thread, PM_LOST_NESTED, 0);
  } else if (atomic_load(&pm__signal_state.active)) {
    take_sample(thread, ucontext);
  } else {
    lose(thread, PM_LOST_INACTIVE, 0);
  }
}

/*
 * A signal may have been under way when its block passed to another thread. So the
 * block is entered first and then asked whose it is; the sampler, the other way round,
 * takes `active` or the tid away first and then waits until nobody is inside.
 */
static void handle_timer(const siginfo_t *info, const void *ucontext) {
  int32_t tid = pm__thread_id();
  struct pm_thread *thread = thread_of(info, tid);
  if (thread == NULL) {
    lose_unknown();
    return;
  }
  bool alone = atomic_fetch_add(&thread->in_handler, 1) == 0;
  atomic_thread_fence(memory_order_release); /* before any counter: pm__profile_count */
  if (atomic_load(&thread->tid) == tid) {
    handle_own(thread, alone, ucontext);
  } else {
    lose_unknown();
  }
  atomic_fetch_sub(&thread->in_handler, 1);
}

/* A signal that is not ours goes to whoever handled it before; the default action is dropped. */
static void chain(int signal, siginfo_t *info, void *ucontext) {
  const struct sigaction *previous = &pm__signal_state.previous;
  if (previous->sa_flags & SA_SIGINFO) {
    if (previous->sa_sigaction != NULL) previous->sa_sigaction(signal, info, ucontext);
  } else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
    previous->sa_handler(signal);
  }
}

void pm__handler(int signal, siginfo_t *info, void *ucontext) {
  pm__gate_enter();
  if (is_ours(info)) {
    handle_timer(info, ucontext);
    pm__gate_leave();
  } else {
    pm__gate_leave();
    chain(signal, info, ucontext);
  }
}
