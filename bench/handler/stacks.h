/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks to walk: made of this program's own functions, and of libraries' too. */
#ifndef PM_BENCH_STACKS_H
#define PM_BENCH_STACKS_H

/* Calls `leaf` below about `depth` frames of recursion through eight different functions. */
void stack_recursion(int depth, void (*leaf)(void));

/* The same below callbacks of qsort, bsearch, twalk, lfind, nftw, dl_iterate_phdr and on. */
void stack_mixed(int depth, void (*leaf)(void));

#endif /* PM_BENCH_STACKS_H */
