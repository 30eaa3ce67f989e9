/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: samples become frames, frames a call tree, the tree a frozen view.
 * Called by: session (collector) and export. Locks: none of its own; the session
 * holds its profile lock around the live tree, a view is immutable.
 *
 * view.h: the one thing exporters read.
 */
#ifndef PM_PROFILE_VIEW_H
#define PM_PROFILE_VIEW_H

#include <jansson.h>

#include "base/base.h"

enum pm_frame_kind {
  PM_FRAME_PYTHON,
  PM_FRAME_NATIVE,
  PM_FRAME_PSEUDO, /* [pyrometer], [truncated N], (unsampled), (pruned), ... */
};

/* A function, or a pseudo frame. Strings are NUL-terminated, valid UTF-8, without line breaks. */
struct pm_view_frame {
  enum pm_frame_kind kind;
  const char *name; /* display: "module.qualname (file:line)", "object!symbol", "[pyrometer]" */
  const char *function; /* qualname, symbol or "0xRVA", or the pseudo name */
  const char *module; /* Python module; object's basename for native; "" for pseudo */
  const char *file; /* source file, or the object's path; "" for pseudo */
  uint32_t line; /* co_firstlineno, 0 when not known */
  const char *category; /* "application", "stdlib", "external", "unknown", "native", "pyrometer" */
  const char *source; /* source id (plugin or package), "" when none */
  uint64_t address; /* native: RVA of the function in its object; else 0 */
  uint32_t object; /* native: index into objects, else UINT32_MAX */
  uint64_t self_ns; /* CPU that is this function's own; see below */
  uint64_t total_ns; /* sampled CPU with this frame anywhere on the stack, counted once */
  uint64_t calls; /* Python: calls while events were on */
  bool calls_exact;
  uint64_t
      self_error_ns; /* self_ns is an estimate that is right within this, 19 times in 20; 0: none */
  bool runtime; /* native: code of the interpreter, the C library or the loader */
};

/*
 * Whose own a sample's CPU is: the innermost frame's. One exception: where nothing
 * but runtime code stands between a Python function and the leaf, the interpreter
 * was at work for that function (allocating, comparing, looking up), and the CPU
 * is the Python function's own. So self_ns of all frames adds up to the samples,
 * as self_ns of all nodes does, but a node's self_ns is the leaf's without exception.
 */

struct pm_view_object {
  const char *path;
  const char *build_id; /* lower-case hex, "" when none */
  uint64_t text_lo, text_hi, bias;
};

/*
 * A node of a thread's call tree. Nodes of a thread stand in pre-order: a node's
 * subtree is nodes [i, i + subtree). Siblings have different frames (equal ones
 * are merged), heaviest first.
 */
struct pm_view_node {
  uint32_t frame; /* index into frames */
  uint32_t subtree; /* nodes in the subtree, this one included */
  uint32_t depth; /* 0 = outermost frame of the thread */
  uint64_t self_ns; /* over all windows */
  uint64_t total_ns;
};

struct pm_view_thread {
  const char *name; /* without the tid */
  int32_t tid;
  bool main;
  uint64_t cpu_ns; /* what the kernel says it used in the session */
  uint64_t sampled_ns; /* what samples account for: sum of its roots without (unsampled) */
  uint64_t samples;
  const char *reason; /* why not all of it could be sampled, "" when it was */
  uint32_t first_node; /* index into nodes */
  uint32_t node_count;
};

struct pm_view_window {
  int32_t id; /* ascending; minute number of its start: unix ms / 60000 */
  int64_t start_ms, end_ms; /* unix ms */
  uint64_t cpu_ns; /* CPU of the process in the window */
};

struct pm_view {
  const char *version; /* Pyrometer's */
  int32_t pid;
  const char *command; /* the program's name, for titles */
  int64_t start_ms, end_ms; /* unix ms */
  double seconds; /* wall */
  uint32_t rate_hz;
  uint64_t cpu_ns; /* the process, kernel's figure */
  uint64_t sampled_ns;
  uint64_t samples; /* stored */
  double overhead_pct; /* of cpu_ns */
  double events_share; /* of the CPU, in which calls were counted: 1 unless a budget was short */

  const char *python_version; /* "" without Python */
  bool python_free_threaded;
  const char *python_state; /* "attributed", "native-only", "absent" */
  const char *python_reason; /* "" or why not attributed */

  const struct pm_view_frame *frames;
  uint32_t frame_count;
  const struct pm_view_object *objects;
  uint32_t object_count;
  const struct pm_view_thread *threads; /* by sampled CPU, most first */
  uint32_t thread_count;
  const struct pm_view_node *nodes;
  uint32_t node_count;
  const struct pm_view_window *windows; /* at least one; idle minutes are there too */
  uint32_t window_count;
  /* total_by_window[node * window_count + window]: inclusive ns of a node in a window. */
  const uint64_t *total_by_window;

  json_t *diagnostics; /* an object; the keys of the design, section 6 */
};

#endif /* PM_PROFILE_VIEW_H */
