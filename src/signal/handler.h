/* SPDX-License-Identifier: Apache-2.0 */
/* The signal handler and the few words the sampler steers it with. */
#ifndef PM_SIGNAL_HANDLER_H
#define PM_SIGNAL_HANDLER_H

#include <signal.h>

#include "base/base.h"
#include "signal/thread.h"

/*
 * Owner:    the sampler writes, with no handler of ours running for `previous`.
 * Readers:  handlers.
 * Ordering: release store of `active`, acquire load.
 */
struct pm_signal_state {
  _Atomic bool active;
  uintptr_t blocks_lo, blocks_hi;                /* where all thread blocks lie */
  size_t block_size;
  struct sigaction previous;                     /* what was installed before us */
  _Atomic uint64_t lost[PM_LOST_KINDS]; /* signals that found no thread block, since ever */
};
extern struct pm_signal_state pm__signal_state;

/*
 * The handler: installed with SA_SIGINFO | SA_RESTART | SA_ONSTACK. Our timers'
 * signals carry the address of the thread's block, or of pm__signal_state when
 * one timer serves the whole process; any other signal goes to `previous`.
 */
void pm__handler(int signal, siginfo_t *info, void *ucontext);

/*
 * The threads by tid, for signals that carry no thread pointer. One bucket list
 * a hash; writers are serialised by the sampler's lock, readers are handlers.
 * Blocks are never unmapped, so a reader that meets a block on its way to
 * another list ends there early and misses, at worst.
 */
void pm__thread_insert(struct pm_thread *thread);
void pm__thread_remove(struct pm_thread *thread);
struct pm_thread *pm__thread_find(int32_t tid);
/* In a forked child: forgets all. */
void pm__threads_forked(void);

#endif /* PM_SIGNAL_HANDLER_H */
