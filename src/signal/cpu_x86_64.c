/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64 (System V ABI): registers by DWARF number, and what a call looks like in text. */
#include "signal/cpu.h"

#include <sys/syscall.h>
#include <ucontext.h>

enum { DWARF_RBX = 3, DWARF_RBP = 6, DWARF_RSP = 7, DWARF_RIP = 16 };

/* ucontext's index of each DWARF register; the ABI's numbering is another one. */
static const uint8_t greg_of[] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

_Static_assert(offsetof(ucontext_t, uc_mcontext.gregs) + (REG_RIP + 1) * 8 <= PM_CPU_UCONTEXT_BYTES,
               "the registers of a ucontext_t lie in its first bytes");

static uintptr_t greg(const void *ucontext, int index) {
  return (uintptr_t)((const ucontext_t *)ucontext)->uc_mcontext.gregs[index];
}

struct pm_registers pm__cpu_interrupted(const void *ucontext) {
  return (struct pm_registers){
      .pc = greg(ucontext, REG_RIP),
      .sp = greg(ucontext, REG_RSP),
      .fp = greg(ucontext, REG_RBP),
      .aux = greg(ucontext, REG_RBX),
      .interrupted = ucontext,
  };
}

/* Naked: rbp and rbx must still be the caller's. */
__attribute__((naked)) void pm__cpu_capture(__attribute__((unused)) struct pm_registers *out) {
  __asm__("movq (%rsp), %rax\n\t"
          "movq %rax, 0(%rdi)\n\t"
          "leaq 8(%rsp), %rax\n\t"
          "movq %rax, 8(%rdi)\n\t"
          "movq %rbp, 16(%rdi)\n\t"
          "movq %rbx, 24(%rdi)\n\t"
          "movq $0, 32(%rdi)\n\t"
          "ret");
}
_Static_assert(offsetof(struct pm_registers, sp) == 8 && offsetof(struct pm_registers, fp) == 16 &&
                   offsetof(struct pm_registers, aux) == 24 &&
                   offsetof(struct pm_registers, interrupted) == 32,
               "as pm__cpu_capture writes them");

bool pm__cpu_register(const struct pm_registers *registers, unsigned number, uintptr_t *value) {
  switch (number) {
  case DWARF_RSP: *value = registers->sp; return true;
  case DWARF_RBP: *value = registers->fp; return true;
  case DWARF_RBX: *value = registers->aux; return true;
  case DWARF_RIP: *value = registers->pc; return true;
  default: break;
  }
  if (!registers->interrupted || number >= PM_COUNT_OF(greg_of)) return false;
  *value = greg(registers->interrupted, greg_of[number]);
  return true;
}

unsigned pm__cpu_stack_bases(const struct pm_registers *registers, uintptr_t *bases) {
  bases[0] = registers->sp;
  bases[1] = registers->aux;
  bases[2] = registers->fp;
  if (!registers->interrupted) return 3;
  bases[3] = greg(registers->interrupted, REG_R12); /* OpenBLAS's SGEMM kernels */
  return 4;
}

long pm__cpu_sigprocmask(int how, uintptr_t mask, uintptr_t size) {
  long answer;
  register uintptr_t size_in_r10 __asm__("r10") = size;
  __asm__ volatile("syscall"
                   : "=a"(answer)
                   : "a"((long)SYS_rt_sigprocmask), "D"((long)how), "S"(mask), "d"(0L),
                     "r"(size_in_r10)
                   : "rcx", "r11", "memory");
  return answer;
}

uintptr_t pm__cpu_thread_pointer(void) {
  uintptr_t self; /* the ABI: the first word of the control block is its own address */
  __asm__("movq %%fs:0, %0" : "=r"(self));
  return self;
}

/*
 * The length of FF /2 (call r/m64) by its ModRM and SIB byte; 0 for anything
 * else. Prefixes do not matter: the bytes before the opcode are not looked at.
 */
static unsigned indirect_call_length(const uint8_t *at) {
  if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) return 0;
  unsigned mod = at[1] >> 6, rm = at[1] & 7;
  if (mod == 3) return 2;
  unsigned sib = rm == 4;
  if (mod == 1) return 3 + sib;
  if (mod == 2) return 6 + sib;
  if (rm == 5) return 6;                          /* rip + disp32 */
  return sib && (at[2] & 7) == 5 ? 7 : 2 + sib;   /* SIB without base: disp32 */
}

enum { CALL_REL32 = 0xe8, CALL_REL32_LENGTH = 5 };

/* volatile, or gcc makes a call of the loop. */
__attribute__((no_sanitize("address"))) static void read_text(uintptr_t address, uint8_t *bytes) {
  for (unsigned i = 0; i < PM_CPU_CALL_BYTES; i++)
    bytes[i] = *(const volatile uint8_t *)(address - PM_CPU_CALL_BYTES + i);
}

bool pm__cpu_follows_call(uintptr_t address) {
  uint8_t bytes[PM_CPU_CALL_BYTES + 1]; /* one more: a SIB byte is looked at before it counts */
  bytes[PM_CPU_CALL_BYTES] = 0;
  read_text(address, bytes);
  if (bytes[PM_CPU_CALL_BYTES - CALL_REL32_LENGTH] == CALL_REL32) return true;
  for (unsigned length = 2; length <= 7; length++)
    if (indirect_call_length(bytes + PM_CPU_CALL_BYTES - length) == length) return true;
  return false;
}

bool pm__cpu_call_target(uintptr_t address, uintptr_t *target) {
  uint8_t bytes[PM_CPU_CALL_BYTES];
  read_text(address, bytes);
  if (bytes[PM_CPU_CALL_BYTES - CALL_REL32_LENGTH] != CALL_REL32) return false;
  uint32_t distance = 0;
  for (unsigned i = 0; i < 4; i++) distance |= (uint32_t)bytes[PM_CPU_CALL_BYTES - 4 + i] << 8 * i;
  *target = address + (uintptr_t)(intptr_t)(int32_t)distance;
  return true;
}
