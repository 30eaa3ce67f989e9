/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what every layer may use: limits, clocks, atomics, small containers.
 * Called by: everybody. Includes no other folder. Locks: none held here.
 */
#ifndef PM_BASE_BASE_H
#define PM_BASE_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PM_LIKELY(x) __builtin_expect(!!(x), 1)
#define PM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PM_COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Of thread-local variables that are read often, or where no call may be made. A library
 * loaded late gets initial-exec storage from glibc's surplus (a few bytes are no matter
 * there); musl has none, so there the general model is used.
 */
#ifndef PM_TLS_MODEL
#ifdef __GLIBC__
#define PM_TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define PM_TLS_MODEL
#endif
#endif

enum { PM_CACHE_LINE = 64 }; /* bytes; on every processor that is supported */

/* Limits named in the design; each has a counter that says when it was reached. */
enum {
  PM_NATIVE_FRAMES = 256,     /* native frames a sample keeps */
  PM_PYTHON_FRAMES = 256,     /* visible frames of a shadow stack */
  PM_CODES_MAX = 65536,       /* code objects a session registers */
  PM_THREADS_MAX = 8192,      /* threads sampled at once */
  PM_PYTHON_THREADS_DEFAULT = 256,
  PM_RATE_DEFAULT = 100,
  PM_RATE_MAX = 250,
};

/* CLOCK_MONOTONIC in ns; async-signal-safe. */
uint64_t pm__clock_monotonic(void);
/* CLOCK_REALTIME in ns; async-signal-safe. */
uint64_t pm__clock_realtime(void);
/* CPU time in ns of the calling thread; async-signal-safe. */
uint64_t pm__clock_thread_self(void);
/* CPU time in ns of thread `tid` of this process; false once it has ended. */
bool pm__clock_thread(int32_t tid, uint64_t *ns);
/* CPU time in ns of the process, all threads, dead ones too. */
uint64_t pm__clock_process(void);
/* The kernel's thread id of the caller; async-signal-safe. */
int32_t pm__thread_id(void);

#endif /* PM_BASE_BASE_H */
