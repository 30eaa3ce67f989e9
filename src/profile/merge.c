/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h for the rule. */
#include "profile/merge.h"

/* Where a Python frame goes: a native index, or one of these. */
enum {
  AT_ROOT = -1, /* before all native frames */
  AT_LEAF = -2, /* after all native frames */
  AT_CUT = -3,  /* where the native stack was cut */
  UNPLACED = -4,
};

struct placing {
  const struct pm_merge_input *in;
  int32_t position[PM_PYTHON_FRAMES];
};

/* First pass: frames whose mark is the CFA of a native frame, root to leaf. */
static uint32_t place_by_mark(struct placing *p) {
  int32_t next = (int32_t)p->in->native_count - 1;
  uint32_t misses = 0;
  for (uint32_t j = 0; j < p->in->python_count; j++) {
    uint64_t mark = p->in->python[j].mark;
    int32_t i = mark == 0 ? -1 : next;
    while (i >= 0 && p->in->native[i].cfa != mark) i--;
    p->position[j] = i >= 0 ? i : UNPLACED;
    if (i >= 0) next = i;
    if (i < 0 && !p->in->python[j].hidden) misses++;
  }
  return misses;
}

/* Interpreter frames from native index `root` down to `leaf`, root first; at most `room`. */
static uint32_t interpreters_between(const struct placing *p, int32_t root, int32_t leaf,
                                     int32_t *found, uint32_t room) {
  uint32_t count = 0;
  for (int32_t i = root; i >= leaf && i >= 0 && count < room; i--) {
    if (p->in->native[i].role == PM_ROLE_INTERPRETER) found[count++] = i;
  }
  return count;
}

/* Where frames go that have no interpreter frame to go to. */
static int32_t place_without_interpreter(const struct placing *p, int32_t before, int32_t after) {
  if (after >= 0) return after;
  if (before < (int32_t)p->in->native_count) return before;
  return p->in->native_complete ? AT_LEAF : AT_ROOT;
}

/*
 * Places the run [from, to) of unplaced frames between two placed neighbours,
 * `before` (native_count: none) and `after` (-1: none). Every interpreter frame in
 * between runs at least one of them: one to each from the leaf end, what is left
 * over to the outermost. With none in between they were called from Python.
 */
static void place_run(struct placing *p, uint32_t from, uint32_t to, int32_t before,
                      int32_t after) {
  int32_t split = (int32_t)p->in->native_split;
  bool spans_cut = p->in->native_skipped > 0 && before >= split && after < split;
  int32_t found[PM_NATIVE_FRAMES];
  uint32_t count =
      spans_cut ? 0 : interpreters_between(p, before - 1, after + 1, found, PM_NATIVE_FRAMES);
  for (uint32_t j = to; j-- > from;) {
    uint32_t from_leaf = to - 1 - j;
    if (spans_cut) {
      p->position[j] = AT_CUT;
    } else if (count == 0) {
      p->position[j] = place_without_interpreter(p, before, after);
    } else {
      p->position[j] = found[from_leaf < count ? count - 1 - from_leaf : 0];
    }
  }
}

/* Second pass: the frames that no mark placed. */
static void place_by_order(struct placing *p) {
  uint32_t count = p->in->python_count;
  int32_t before = (int32_t)p->in->native_count;
  for (uint32_t j = 0; j < count;) {
    if (p->position[j] != UNPLACED) {
      before = p->position[j++];
      continue;
    }
    uint32_t end = j;
    while (end < count && p->position[end] == UNPLACED) end++;
    place_run(p, j, end, before, end < count ? p->position[end] : -1);
    j = end;
  }
}

static void emit(struct pm_merge_output *out, struct pm_frame_key key) {
  if (out->count < PM_MERGE_FRAMES_MAX) out->frames[out->count++] = key;
}

static void emit_truncated(struct pm_merge_output *out, uint32_t skipped) {
  out->truncated += skipped;
  emit(out, pm__frame_key_pseudo(PM_PSEUDO_TRUNCATED));
}

/* Emits the Python frames placed at `position`, from *next on; true when there was one. */
static bool emit_python(const struct placing *p, struct pm_merge_output *out, int32_t position,
                        uint32_t *next) {
  bool any = false;
  while (*next < p->in->python_count && p->position[*next] == position) {
    const struct pm_merge_python *frame = &p->in->python[*next];
    if (*next == p->in->python_split && p->in->python_skipped > 0) {
      emit_truncated(out, p->in->python_skipped);
    }
    if (!frame->hidden) {
      emit(out, (struct pm_frame_key){.kind = PM_KEY_PYTHON, .id = frame->code, .value = 0});
      out->python++;
    }
    (*next)++;
    any = true;
  }
  return any;
}

static void emit_all(const struct placing *p, struct pm_merge_output *out) {
  const struct pm_merge_input *in = p->in;
  uint32_t next = 0;
  emit_python(p, out, AT_ROOT, &next);
  for (int32_t i = (int32_t)in->native_count - 1; i >= 0; i--) {
    if (in->native_skipped > 0 && i + 1 == (int32_t)in->native_split) {
      emit_truncated(out, in->native_skipped);
      emit_python(p, out, AT_CUT, &next);
    }
    bool python = emit_python(p, out, i, &next);
    if (!python) emit(out, in->native[i].key);
    if (in->native[i].role == PM_ROLE_INTERPRETER) {
      out->interpreted = true;
      out->bare = !python;
    }
  }
  emit_python(p, out, AT_LEAF, &next);
  if (in->python_skipped > 0 && in->python_split == in->python_count) {
    emit_truncated(out, in->python_skipped);
  }
}

/*
 * How many native frames at the leaf are Pyrometer's doing. Either its own code is
 * there, or the interpreter was on its way to one of our callbacks: between the
 * innermost interpreter frame and the leaf stands nothing but what calibration
 * saw there. They end at the interpreter frame, or, where C code called us, at our
 * outermost frame.
 */
static uint32_t count_own(const struct pm_merge_input *in) {
  uint32_t own = 0;
  bool only_dispatch = true;
  for (uint32_t i = 0; i < in->native_count; i++) {
    const struct pm_merge_native *frame = &in->native[i];
    if (frame->role == PM_ROLE_INTERPRETER) return own > 0 || only_dispatch ? i : 0;
    if (frame->own) own = i + 1;
    only_dispatch = only_dispatch && frame->role == PM_ROLE_DISPATCH;
  }
  return own;
}

/* The same stack without its first `count` native frames. */
static struct pm_merge_input without_leaf(const struct pm_merge_input *in, uint32_t count) {
  struct pm_merge_input rest = *in;
  rest.native += count;
  rest.native_count -= count;
  rest.native_split -= count < in->native_split ? count : in->native_split;
  return rest;
}

/*
 * Cuts the stack where Python code of ours begins, at the interpreter frame that was
 * interrupted for it: what it calls (a log's handlers) is Pyrometer's doing.
 */
static bool cut_at_own_python(struct pm_merge_input *in) {
  uint32_t first = 0, i = 0;
  while (first < in->python_count && !in->python[first].own) first++;
  if (first == in->python_count) return false;
  while (i < in->native_count && in->native[i].cfa != in->python[first].mark) i++;
  if (i == in->native_count) return false;
  for (i++; i < in->native_count && in->native[i].role != PM_ROLE_INTERPRETER;) i++;
  *in = without_leaf(in, i);
  in->python_count = first;
  if (in->python_split >= first) in->python_skipped = 0;
  return true;
}

void pm__merge(const struct pm_merge_input *input, struct pm_merge_output *output) {
  output->count = output->python = output->truncated = 0;
  struct pm_merge_input rest = *input;
  output->own = cut_at_own_python(&rest);
  uint32_t own = output->own ? 0 : count_own(&rest);
  output->own |= own > 0;
  output->bare = false;
  rest = without_leaf(&rest, own);
  struct placing placing = {.in = &rest};
  output->misses = place_by_mark(&placing);
  place_by_order(&placing);
  output->interpreted = false;
  emit_all(&placing, output);
  if (output->own) emit(output, pm__frame_key_pseudo(PM_PSEUDO_OWN));
  if (output->count == 0) emit(output, pm__frame_key_pseudo(PM_PSEUDO_NO_STACK));
}
