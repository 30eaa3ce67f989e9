/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signal: everything that may run inside the signal handler, and nothing else.
 * Called by: the kernel, and by calibration on a thread's own stack. It takes no
 * lock, allocates nothing, calls no loader and no Python.
 *
 * cpu.h: the registers a walk needs; one cpu_<machine>.c a CPU behind it.
 */
#ifndef PM_SIGNAL_CPU_H
#define PM_SIGNAL_CPU_H

#include "base/base.h"

/*
 * Enough of a frame's registers to find its caller's. `aux` is rbx on x86-64.
 * `interrupted` is the ucontext_t of a frame that a signal interrupted: there the
 * other registers are known too. NULL in every other frame.
 */
struct pm_registers {
  uintptr_t pc;
  uintptr_t sp;
  uintptr_t fp;
  uintptr_t aux;
  const void *interrupted;
};

/* The interrupted registers out of a handler's ucontext_t. */
struct pm_registers pm__cpu_interrupted(const void *ucontext);

/* The registers of the calling function, with pc just behind this call. */
void pm__cpu_capture(struct pm_registers *out);

/* The register with this DWARF number; false when the frame does not know it. */
bool pm__cpu_register(const struct pm_registers *registers, unsigned number, uintptr_t *value);

/*
 * Callee-saved registers in which assembly without CFI keeps its old stack pointer,
 * most likely first. Returns how many of PM_CPU_BASES were written.
 */
enum { PM_CPU_BASES = 4, PM_CPU_UCONTEXT_BYTES = 256, PM_CPU_CALL_BYTES = 8 };
unsigned pm__cpu_stack_bases(const struct pm_registers *registers, uintptr_t *bases);

/* rt_sigprocmask(how, mask, NULL, size) as the kernel answers it: 0 or -errno; errno stays. */
long pm__cpu_sigprocmask(int how, uintptr_t mask, uintptr_t size);

/* The thread pointer: on Linux the thread's control block, at its stack's root end. */
uintptr_t pm__cpu_thread_pointer(void);

/*
 * Does the instruction before `address` look like a call? Reads up to
 * PM_CPU_CALL_BYTES bytes of text before it: the caller makes sure they are there.
 */
bool pm__cpu_follows_call(uintptr_t address);

/* The target of the call before `address`, when the instruction names it; as above. */
bool pm__cpu_call_target(uintptr_t address, uintptr_t *target);

#endif /* PM_SIGNAL_CPU_H */
