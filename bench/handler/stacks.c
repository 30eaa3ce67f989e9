/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks.h"

#include <fnmatch.h>
#include <glob.h>
#include <link.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

static void (*target)(void);
static volatile int sink;

/* Eight functions with frames of different sizes and kinds: saved registers, VLA, alignment. */
static void descend(int depth);
#define FRAME(name, declare, touch)                                \
  static __attribute__((noinline, noclone)) void name(int depth) { \
    declare;                                                       \
    touch;                                                         \
    descend(depth - 1);                                            \
    sink += depth;                                                 \
  }
#define USE(array) __asm__ volatile("" : : "r"(array) : "memory")
FRAME(plain, int unused = depth, sink = unused)
FRAME(small, char room[40], USE(room))
FRAME(large, char room[1000], USE(room))
FRAME(varying, char *room = __builtin_alloca((size_t)(depth % 50) + 1), USE(room))
FRAME(aligned, char room[64] __attribute__((aligned(64))), USE(room))
FRAME(saving, long a = depth * 3L; long b = depth * 5L;
      long c = depth * 7L,
      __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : : "rbx", "r12", "r13", "r14"))
FRAME(sixteen, char room[16] __attribute__((aligned(16))), USE(room))
FRAME(tiny, , )

static __attribute__((noinline, noclone)) void descend(int depth) {
  static void (*const frames[])(int) = {plain,   small,  large,   varying,
                                        aligned, saving, sixteen, tiny};
  if (depth <= 0) target();
  else frames[depth % 8](depth - 1);
  sink++;
}

void stack_recursion(int depth, void (*leaf)(void)) {
  target = leaf;
  descend(depth);
}

/* Each library function calls the next one's user through its callback, once. */
static int rest;
static void go_on(int step);

static int step_of; /* where the chain of callbacks stands */
static int in_qsort(const void *a, const void *b) {
  if (step_of == 0) go_on(1);
  return *(const int *)a - *(const int *)b;
}
static int in_bsearch(const void *a, const void *b) {
  if (step_of == 1) go_on(2);
  return *(const int *)a - *(const int *)b;
}
static int in_lfind(const void *a, const void *b) {
  if (step_of == 2) go_on(3);
  return *(const int *)a - *(const int *)b;
}
static int in_tsearch(const void *a, const void *b) {
  (void)a, (void)b;
  return 0;
}
static void in_twalk(const void *node, VISIT visit, int depth) {
  (void)node, (void)depth, (void)visit;
  if (step_of == 3) go_on(4);
}
static int in_phdr(struct dl_phdr_info *info, size_t size, void *context) {
  (void)info, (void)size, (void)context;
  if (step_of == 4) go_on(5);
  return 1;
}
static int in_glob(const char *path, int error) {
  (void)path, (void)error;
  if (step_of == 5) go_on(6);
  return 1;
}

static __attribute__((noinline, noclone)) void go_on(int step) {
  static const int sorted[] = {1, 2};
  int numbers[] = {2, 1};
  size_t count = 2;
  void *root = NULL;
  glob_t found;
  step_of = step;
  switch (step) {
  case 0: qsort(numbers, 2, sizeof *numbers, in_qsort); break;
  case 1: sink += bsearch(&sorted[1], sorted, 2, sizeof *sorted, in_bsearch) != NULL; break;
  case 2: sink += lfind(&sorted[1], sorted, &count, sizeof *sorted, in_lfind) != NULL; break;
  case 3:
    tsearch(&numbers[0], &root, in_tsearch);
    twalk(root, in_twalk);
    tdelete(&numbers[0], &root, in_tsearch);
    break;
  case 4: dl_iterate_phdr(in_phdr, NULL); break;
  case 5:
    if (!glob("/proc/1/nothing-here/*/x*", 0, in_glob, &found)) globfree(&found);
    if (step_of == 5) go_on(6); /* there was nothing to complain about */
    break;
  default: descend(rest); break;
  }
  sink++;
}

void stack_mixed(int depth, void (*leaf)(void)) {
  enum { FRAMES_OF_CALLBACKS = 19 };
  target = leaf;
  rest = depth > FRAMES_OF_CALLBACKS ? depth - FRAMES_OF_CALLBACKS : 0;
  go_on(0);
}
