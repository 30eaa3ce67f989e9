/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef PM_SAMPLER_INTERNAL_H
#define PM_SAMPLER_INTERNAL_H

#include "sampler/sampler.h"

/* Blocks: one reserved range, so that a handler can tell a block's address from any other. */
bool pm__pool_reserve(void);
struct pm_sampled *
pm__pool_take(void); /* zeroed but for its ring and cache; NULL when all are used */
/* No handler of the block's own may be inside. */
void pm__pool_give(struct pm_sampled *sampled);
bool pm__pool_add_shadow(struct pm_sampled *sampled);
/* Blocks taken at least once are [0, count) of `blocks`. Without the lock too. */
struct pm_sampled *pm__pool_block(uint32_t index);
uint32_t pm__pool_count(void);
/* In a forked child: no block has a thread. AS-safe. */
void pm__pool_forked(void);

/* Signal: picks one, installs the handler. 0 or PYROMETER_E_SIGNAL. */
int pm__install_handler(void);
/* Is it still ours? The program may have put another handler in its place. */
bool pm__install_is_in_place(void);

/* Timers; all times in ns of CPU. False where the kernel has no more of them (errno). */
bool pm__timer_thread(struct pm_sampled *sampled, uint64_t period_ns, uint64_t first_ns);
/* Changes the pace of a timer that runs. */
void pm__timer_set(struct pm_sampled *sampled, uint64_t period_ns, uint64_t first_ns);
/* 1 .. limit, so that timers armed together do not fire together. */
uint64_t pm__timer_random(uint64_t limit);
/* Makes the process timer without starting it, while there is room under the limit. */
void pm__timer_process_reserve(void);
/* Starts it, for threads that could get no timer of their own; false when there is none. */
bool pm__timer_process(uint64_t period_ns);
void pm__timer_delete(struct pm_sampled *sampled);
void pm__timer_process_delete(void);
/* In a forked child, which has inherited no timer. AS-safe. */
void pm__timer_forked(void);

/* Stack bounds of the calling thread; false when the system does not tell. */
bool pm__stack_of_caller(uintptr_t *lo, uintptr_t *hi);
/* The root end of the mapping that `sp` lies in, from /proc/self/maps. */
bool pm__stack_of_mapping(uintptr_t sp, uintptr_t *lo, uintptr_t *hi);

#endif /* PM_SAMPLER_INTERNAL_H */
