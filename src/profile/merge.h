/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the native and the Python stack of one sample, frame by frame. Pure: no state, no look-ups. */
#ifndef PM_PROFILE_MERGE_H
#define PM_PROFILE_MERGE_H

#include "base/base.h"
#include "profile/frame.h"
#include "python/python.h"
#include "signal/shadow.h"

struct pm_merge_native {
  struct pm_frame_key key;
  uint64_t cfa;
  enum pm_native_role role;
  bool own; /* code of libpyrometer itself */
  bool c_library; /* code of the C library or the loader */
};

struct pm_merge_python {
  uint32_t code;
  uint64_t mark; /* 0: not known */
  bool hidden; /* Pyrometer's own Python code */
  bool own; /* of it, the part whose callees are its own doing too */
};

struct pm_merge_input {
  const struct pm_merge_native *native; /* leaf first */
  uint32_t native_count, native_split, native_skipped;
  bool native_complete; /* the walk reached the thread's root */
  const struct pm_merge_python *python; /* root first */
  uint32_t python_count, python_split, python_skipped;
};

enum { PM_MERGE_FRAMES_MAX = PM_NATIVE_FRAMES + PM_PYTHON_FRAMES + 4 };

struct pm_merge_output {
  struct pm_frame_key frames[PM_MERGE_FRAMES_MAX]; /* root first */
  uint32_t count;
  uint32_t python; /* Python frames among them */
  uint32_t misses; /* Python frames placed by order, not by their CFA */
  uint32_t truncated; /* frames that the markers stand for */
  bool bare; /* the innermost interpreter frame runs Python code that no event told of */
  bool own; /* the sample stood in Pyrometer's own code: [pyrometer] is the leaf */
  bool interpreted; /* an interpreter frame is on the native stack */
};

/*
 * The rule: a native frame whose CFA is a Python frame's mark is the interpreter
 * running it, and gives way to it. Several Python frames with one mark are
 * Python-to-Python calls, in push order. A Python frame whose mark is unknown or
 * not on the native stack goes, by order, to an interpreter frame between its
 * neighbours' and counts as a miss.
 */
void pm__merge(const struct pm_merge_input *input, struct pm_merge_output *output);

#endif /* PM_PROFILE_MERGE_H */
