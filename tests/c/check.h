/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for the C tests: a failed one prints where and what, and the test goes on. */
#ifndef PM_TESTS_CHECK_H
#define PM_TESTS_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int check_done, check_failed;

static inline bool check_result(bool good, const char *file, int line, const char *text) {
  check_done++;
  if (!good) check_failed++;
  if (!good) fprintf(stderr, "%s:%d: failed: %s", file, line, text);
  return good;
}

static inline void check_int(long long got, long long want, const char *file, int line,
                             const char *text) {
  if (!check_result(got == want, file, line, text))
    fprintf(stderr, ": %lld, not %lld\n", got, want);
}

/* Two NULLs are equal; NULL differs from every string. */
static inline void check_str(const char *got, const char *want, const char *file, int line,
                             const char *text) {
  bool equal = got != NULL && want != NULL ? strcmp(got, want) == 0 : got == want;
  if (!check_result(equal, file, line, text))
    fprintf(stderr, ": \"%s\", not \"%s\"\n", got ? got : "(null)", want ? want : "(null)");
}

#define CHECK(condition) \
  ((void)(check_result((condition), __FILE__, __LINE__, #condition) || fputc('\n', stderr)))
#define CHECK_EQ_INT(got, want) \
  check_int((long long)(got), (long long)(want), __FILE__, __LINE__, #got)
#define CHECK_EQ_STR(got, want) check_str((got), (want), __FILE__, __LINE__, #got)

/* The exit status of the test's main: `return check_report();`. CI counts by this line. */
static inline int check_report(void) {
  printf("%d passed, %d failed\n", check_done - check_failed, check_failed);
  return check_failed != 0;
}

#endif /* PM_TESTS_CHECK_H */
