/* SPDX-License-Identifier: Apache-2.0 */
/* The merge of a native and a Python stack, on stacks written by hand. */
#include "profile/merge.h"

#include "check.h"

enum { MAX = 64 };

/* A sample in words: natives leaf first, Python frames root first. */
struct sample {
  struct pm_merge_native native[MAX];
  struct pm_merge_python python[MAX];
  struct pm_merge_input in;
};

static void add_native(struct sample *s, char name, uint64_t cfa, enum pm_native_role role) {
  s->native[s->in.native_count++] = (struct pm_merge_native){
      .key = {.kind = PM_KEY_NATIVE, .id = (uint32_t)name}, .cfa = cfa, .role = role};
}

static void add_python(struct sample *s, char name, uint64_t mark) {
  s->python[s->in.python_count++] = (struct pm_merge_python){.code = (uint32_t)name, .mark = mark};
}

/* The merged stack as a text, root first: natives in lower case as named, Python in upper case. */
static const char *merged(struct sample *s, struct pm_merge_output *out) {
  static char text[PM_MERGE_FRAMES_MAX + 1];
  static const char pseudo[PM_PSEUDO_KINDS] = {
      [PM_PSEUDO_OWN] = '!', [PM_PSEUDO_TRUNCATED] = '~', [PM_PSEUDO_NO_STACK] = '?'};
  s->in.native = s->native;
  s->in.python = s->python;
  pm__merge(&s->in, out);
  for (uint32_t i = 0; i < out->count; i++) {
    text[i] =
        out->frames[i].kind == PM_KEY_PSEUDO ? pseudo[out->frames[i].id] : (char)out->frames[i].id;
  }
  text[out->count] = '\0';
  return text;
}

/* main -> interpreter(A) -> map -> interpreter(B, C inline) -> sort -> interpreter(D) -> leaf */
static struct sample callbacks_sample(void) {
  struct sample s = {.in = {.native_complete = true}};
  add_native(&s, 'l', 100, PM_ROLE_OTHER);
  add_native(&s, 'i', 200, PM_ROLE_INTERPRETER);
  add_native(&s, 's', 300, PM_ROLE_OTHER);
  add_native(&s, 'i', 400, PM_ROLE_INTERPRETER);
  add_native(&s, 'm', 500, PM_ROLE_OTHER);
  add_native(&s, 'i', 600, PM_ROLE_INTERPRETER);
  add_native(&s, 'r', 700, PM_ROLE_OTHER);
  add_python(&s, 'A', 600);
  add_python(&s, 'B', 400);
  add_python(&s, 'C', 400);
  add_python(&s, 'D', 200);
  return s;
}

static void test_exact(void) {
  struct sample s = callbacks_sample();
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rAmBCsDl");
  CHECK_EQ_INT(out.misses, 0);
  CHECK_EQ_INT(out.python, 4);
}

/* Python code without events, in a subinterpreter: its interpreter frame has no Python frame. */
static void test_bare_interpreter(void) {
  struct sample s = callbacks_sample();
  struct pm_merge_output out;
  merged(&s, &out);
  CHECK(!out.bare);
  s.in.python_count--; /* without D */
  CHECK_EQ_STR(merged(&s, &out), "rAmBCsil");
  CHECK(out.bare);
}

/* Marks decide, whatever role calibration knows: a split loop's part may be new to it. */
static void test_marks_without_roles(void) {
  struct sample s = callbacks_sample();
  for (uint32_t i = 0; i < s.in.native_count; i++) s.native[i].role = PM_ROLE_OTHER;
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rAmBCsDl");
}

static void test_seeded_by_order(void) {
  struct sample s = callbacks_sample();
  for (int i = 0; i < 4; i++) s.python[i].mark = 0;
  struct pm_merge_output out;
  /* One a native interpreter frame from the leaf; the rest on the outermost. */
  CHECK_EQ_STR(merged(&s, &out), "rABmCsDl");
  CHECK_EQ_INT(out.misses, 4);
}

static void test_seeded_root_then_exact(void) {
  struct sample s = callbacks_sample();
  s.python[0].mark = 0;
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rAmBCsDl");
  CHECK_EQ_INT(out.misses, 1);
}

static void test_walk_that_stopped_early(void) {
  struct sample s = {.in = {.native_complete = false}};
  add_native(&s, 'l', 100, PM_ROLE_OTHER);
  add_native(&s, 'i', 200, PM_ROLE_INTERPRETER);
  add_python(&s, 'A', 600);
  add_python(&s, 'B', 200);
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "ABl");
  CHECK_EQ_INT(out.misses, 1);
}

static void test_walk_without_interpreter(void) {
  struct sample s = {.in = {.native_complete = false}};
  add_native(&s, 'l', 100, PM_ROLE_OTHER);
  add_python(&s, 'A', 600);
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "Al");
}

static void test_cut_in_the_middle(void) {
  struct sample s = {.in = {.native_complete = true, .native_split = 2, .native_skipped = 50}};
  add_native(&s, 'l', 100, PM_ROLE_OTHER);
  add_native(&s, 'i', 200, PM_ROLE_INTERPRETER);
  add_native(&s, 'i', 9000, PM_ROLE_INTERPRETER);
  add_native(&s, 'r', 9100, PM_ROLE_OTHER);
  add_python(&s, 'A', 9000);
  add_python(&s, 'B', 5000); /* its native frame is among the 50 */
  add_python(&s, 'C', 200);
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rA~BCl");
  CHECK_EQ_INT(out.truncated, 50);
}

static void test_deep_python(void) {
  struct sample s = {.in = {.native_complete = true, .python_split = 1, .python_skipped = 7}};
  add_native(&s, 'i', 200, PM_ROLE_INTERPRETER);
  add_native(&s, 'r', 300, PM_ROLE_OTHER);
  add_python(&s, 'A', 200);
  add_python(&s, 'B', 200);
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rA~B");
  s.in.python_count = 1; /* the tail is gone too: the marker still stands */
  CHECK_EQ_STR(merged(&s, &out), "rA~");
}

static void test_own_code(void) {
  struct pm_merge_output out;
  struct sample s = {.in = {.native_complete = true}};
  add_native(&s, 'x', 50, PM_ROLE_OTHER); /* what our callback calls */
  add_native(&s, 'c', 100, PM_ROLE_OTHER);
  s.native[1].own = true;
  add_native(&s, 'd', 150, PM_ROLE_DISPATCH);
  add_native(&s, 'i', 200, PM_ROLE_INTERPRETER);
  add_python(&s, 'A', 200);
  CHECK_EQ_STR(merged(&s, &out), "A!");
  CHECK(out.own);
  s.native[0].role = s.native[1].role = PM_ROLE_DISPATCH; /* on the way to the callback */
  s.native[1].own = false;
  CHECK_EQ_STR(merged(&s, &out), "A!");
  s.native[0].role = PM_ROLE_OTHER; /* another tool's callback: not ours */
  CHECK_EQ_STR(merged(&s, &out), "Adcx");
  CHECK(!out.own);
}

/* A host's C code calls the public interface: from our outermost frame on it is ours. */
static void test_own_interface(void) {
  struct pm_merge_output out;
  struct sample s = {.in = {.native_complete = true}};
  add_native(&s, 'w', 50, PM_ROLE_OTHER);
  add_native(&s, 'p', 100, PM_ROLE_OTHER);
  s.native[1].own = true;
  add_native(&s, 'm', 150, PM_ROLE_OTHER);
  CHECK_EQ_STR(merged(&s, &out), "m!");
}

static void test_hidden_python(void) {
  struct sample s = callbacks_sample();
  s.python[0].hidden = true;
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "rmBCsDl");
}

/* B is ours, in a pending call of A's: all that it calls goes with it. */
static void test_own_python(void) {
  struct sample s = callbacks_sample();
  struct pm_merge_output out;
  s.python[1].hidden = s.python[1].own = true;
  CHECK_EQ_STR(merged(&s, &out), "rA!");
  CHECK(out.own && out.misses == 0 && out.python == 1);
  s.python[1].mark = 1; /* not to be found: only its name is kept back */
  CHECK_EQ_STR(merged(&s, &out), "rAmCsDl");
}

static void test_nothing(void) {
  struct sample s = {.in = {.native_complete = false}};
  struct pm_merge_output out;
  CHECK_EQ_STR(merged(&s, &out), "?");
}

int main(void) {
  test_exact();
  test_bare_interpreter();
  test_marks_without_roles();
  test_seeded_by_order();
  test_seeded_root_then_exact();
  test_walk_that_stopped_early();
  test_walk_without_interpreter();
  test_cut_in_the_middle();
  test_deep_python();
  test_own_code();
  test_own_interface();
  test_hidden_python();
  test_own_python();
  test_nothing();
  return check_report();
}
