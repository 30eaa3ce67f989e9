/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pyrometer.h - the public C interface of libpyrometer.
 *
 * Pyrometer tells which Python functions and which native code burn the CPU of
 * the process it lives in. There is one profiler a process; every function here
 * acts on that one.
 *
 * Threads: every function may be called from any thread, with or without the
 *   GIL, but none from a signal handler. Calls are serialised by one lock.
 * Errors:  functions return PYROMETER_OK (0) or a negative PYROMETER_E_* code;
 *   pyrometer_strerror() explains it and says what to do.
 * Units:   times are nanoseconds of CPU unless a name says otherwise.
 */
#ifndef PYROMETER_H
#define PYROMETER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PYROMETER_API __attribute__((visibility("default")))
#else
#define PYROMETER_API
#endif

/*
 * name, code, what happened, what to do, the Python exception of the package.
 */
#define PYROMETER_ERROR_MAP(X)                                                                    \
  X(OK, 0, "no error", "nothing to do", None)                                                     \
  X(E_ALREADY_RUNNING, -1, "the profiler is already running",                                     \
    "stop it first; one instance runs in a process", RuntimeError)                                \
  X(E_NOT_RUNNING, -2, "the profiler is not running", "start it first", RuntimeError)             \
  X(E_NO_PROFILE, -3, "nothing has been profiled yet", "start and stop first", RuntimeError)      \
  X(E_OPTION, -4, "an option is out of range", "see pyrometer.h for what is allowed", ValueError) \
  X(E_FORMAT, -5, "the output format is not known",                                               \
    "use .sparkprofile, .pb.gz, .collapsed or .json", ValueError)                                 \
  X(E_FILE, -6, "the output file could not be written",                                           \
    "check that the folder exists and may be written", OSError)                                   \
  X(E_MEMORY, -7, "out of memory", "free some memory", MemoryError)                               \
  X(E_SIGNAL, -8, "no signal is free for sampling", "free one real-time signal, or SIGPROF",      \
    RuntimeError)                                                                                 \
  X(E_TIMER, -9, "no CPU timer could be made", "raise RLIMIT_SIGPENDING (ulimit -i)",             \
    RuntimeError)                                                                                 \
  X(E_THREAD, -10, "the collector thread could not be started",                                   \
    "raise the limit of threads (ulimit -u)", RuntimeError)                                       \
  X(E_UNSUPPORTED, -11, "this system is not supported",                                           \
    "use Linux on x86-64 with a readable /proc", RuntimeError)                                    \
  X(E_CALLBACK, -12, "the caller's sink refused the data", "see the sink's own error", OSError)

enum pyrometer_error {
#define PYROMETER_ERROR_ENUM(name, code, what, advice, exception) PYROMETER_##name = (code),
  PYROMETER_ERROR_MAP(PYROMETER_ERROR_ENUM)
#undef PYROMETER_ERROR_ENUM
};

/*
 * A sink for bytes: returns 0, or non-zero to give up (E_CALLBACK). What it calls of
 * this header answers as if no session were there to be had.
 */
typedef int (*pyrometer_sink)(void *context, const void *bytes, size_t size);

/* Flags of struct pyrometer_options. */
#define PYROMETER_NO_NATIVE 1u /* reserved for the engine without signals: E_OPTION today */
#define PYROMETER_NO_PYTHON 2u /* native stacks only, even beside a Python >= 3.12 */
#define PYROMETER_REPORT_JSON 4u /* rows of the log report as JSON objects */
#define PYROMETER_REPORT_LOGGING 8u /* to Python's logger "pyrometer": docs/production.md */

/*
 * What pyrometer_start takes. Set `size` to sizeof the struct you compiled
 * against and the rest to zero for the defaults; later versions add fields at
 * the end.
 */
struct pyrometer_options {
  size_t size;          /* sizeof(struct pyrometer_options) */
  uint32_t rate_hz;     /* samples per second of CPU and thread: 1 to 250, 0 = 100 */
  uint32_t flags;       /* PYROMETER_NO_* */
  uint32_t max_threads; /* threads with Python stacks: 1 to 65536, 0 = 256 */
  /*
   * The log report: every report_every_ms (100 to 86,400,000; 0 = none) what the
   * interval burnt, a row at a time, written by Pyrometer's own thread: to report_fd
   * (0 = standard error) in one write(2) a row, or to report_sink when that is not
   * NULL. The sink is called without the GIL and must not call back; a row it refuses
   * is counted as dropped.
   */
  uint32_t report_every_ms;
  uint32_t report_top; /* functions in a report: 1 to 1000, 0 = 20 */
  int report_fd;
  pyrometer_sink report_sink;
  void *report_context;
  /*
   * A folder that gets one .sparkprofile an interval, the last 60 of this process; NULL:
   * none. It is made when it is not there. One that cannot be written, is a symbolic link,
   * belongs to another user or may be written by everybody is refused in a line on
   * standard error; the session runs.
   */
  const char *report_output;
  /*
   * CPU that Pyrometer may use, in hundredths of a percent of the process's (300 = 3 %), 1 to
   * 10000; 0 = all events are on all the time. Where they would cost more, events are
   * on in bursts; calls are then estimates, and so are the Python frames of samples in between.
   */
  uint32_t budget;
};

/*
 * Starts sampling. NULL options are the defaults. The Python interpreter, if the
 * process has one (CPython 3.12 or newer), is attached at once when the calling
 * thread may take the GIL; without one the profile is native only and
 * pyrometer_snapshot() says why. A profile that was stopped before is dropped.
 * Errors: E_ALREADY_RUNNING, E_OPTION, E_SIGNAL, E_TIMER, E_THREAD, E_MEMORY.
 */
PYROMETER_API int pyrometer_start(const struct pyrometer_options *options);

/*
 * Stops sampling and freezes the profile for export: no timer, event or thread
 * of Pyrometer is left behind. Errors: E_NOT_RUNNING.
 */
PYROMETER_API int pyrometer_stop(void);

/*
 * Writes the profile to `path` (UTF-8 or the file system's bytes); the format
 * goes by the ending: .sparkprofile, .pb.gz, .collapsed, .json. The file is
 * made with mode 0600 under a temporary name and renamed, so a reader never
 * sees half of it. May be called while sampling runs.
 * Errors: E_NO_PROFILE, E_FORMAT, E_FILE (errno is set), E_MEMORY.
 */
PYROMETER_API int pyrometer_export(const char *path);

/*
 * As pyrometer_export, into a sink. `format` is an ending without its first dot:
 * "sparkprofile", "pb.gz", "collapsed" or "json".
 */
PYROMETER_API int pyrometer_export_to(const char *format, pyrometer_sink sink, void *context);

/* Writes the diagnostics as one JSON object into a sink. Errors: E_NO_PROFILE. */
PYROMETER_API int pyrometer_snapshot(pyrometer_sink sink, void *context);

/* Drops a stopped profile and gives its memory and code references back. */
PYROMETER_API int pyrometer_reset(void);

/*
 * Makes the calling thread known at once instead of at the next scan.
 * Errors: E_NOT_RUNNING, E_MEMORY, E_TIMER.
 */
PYROMETER_API int pyrometer_thread_register(void);

/* What pyrometer_arm answers when it is positive. */
#define PYROMETER_ARM_STARTED 1u
#define PYROMETER_ARM_CHILDREN 2u /* child processes report too */
#define PYROMETER_ARM_SIGNAL_SHIFT 8 /* bits 8..15: the signal that shall call pyrometer_toggle */

/*
 * Starts the log report as the environment variable PYROMETER says (docs/production.md
 * has its keys). 0: the variable is not set. Positive: started, see above. Negative: a
 * PYROMETER_E_* code, and one line on standard error has said why. Called again it does
 * nothing and answers the same.
 */
PYROMETER_API int pyrometer_arm(void);

/* Stops what pyrometer_arm started, or starts it again. Errors: as start and stop. */
PYROMETER_API int pyrometer_toggle(void);

/* The message for a code, with the advice. Static storage; never NULL. */
PYROMETER_API const char *pyrometer_strerror(int error);

/* The version of the library, "major.minor.patch". Static storage. */
PYROMETER_API const char *pyrometer_version(void);

#ifdef __cplusplus
}
#endif

#endif /* PYROMETER_H */
