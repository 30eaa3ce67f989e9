/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic_view.h: builds views by hand, for tests of what reads a view.
 *
 * Enter and leave frames as a program would; totals, subtrees and the order of
 * nodes come out by themselves. Siblings must be entered heaviest first and once.
 * Out of memory aborts: this is test code.
 */
#ifndef PM_TESTS_SYNTHETIC_VIEW_H
#define PM_TESTS_SYNTHETIC_VIEW_H

#include "profile/view.h"

enum { SYNTHETIC_START_MINUTE = 29391920, SYNTHETIC_DEPTH = 4096 };

struct synthetic {
  struct pm_view view; /* valid after synthetic_finish */
  struct pm_view_frame *frames;
  struct pm_view_object *objects;
  struct pm_view_thread *threads;
  struct pm_view_node *nodes;
  struct pm_view_window *windows;
  uint64_t *totals;
  char **texts;
  size_t frame_room, thread_room, node_room, text_room, text_count;
  uint32_t path[SYNTHETIC_DEPTH]; /* the nodes that are open */
  uint32_t depth;
};

/* `windows` minutes from SYNTHETIC_START_MINUTE on, one native object, no thread. */
struct synthetic *synthetic_new(uint32_t windows);
void synthetic_free(struct synthetic *s);

/* Texts must outlive the view, unless they come from synthetic_text. */
uint32_t synthetic_python(struct synthetic *s, const char *module, const char *qualname,
                          const char *file, uint32_t line);
uint32_t synthetic_native(struct synthetic *s, const char *object, const char *symbol,
                          uint64_t rva);
uint32_t synthetic_pseudo(struct synthetic *s, const char *name);
/* printf into memory of the view. */
const char *synthetic_text(struct synthetic *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct pm_view_thread *synthetic_thread(struct synthetic *s, const char *name, int32_t tid);
void synthetic_enter(struct synthetic *s, uint32_t frame);
void synthetic_leave(struct synthetic *s);
/* CPU of the innermost open frame in a window. */
void synthetic_burn(struct synthetic *s, uint32_t window, uint64_t ns);
/* Enter, burn, leave. */
void synthetic_leaf(struct synthetic *s, uint32_t frame, uint32_t window, uint64_t ns);

/* Fills the sums of frames, threads, windows and the process, and the default texts. */
const struct pm_view *synthetic_finish(struct synthetic *s);

/* The odd views, by name: what each is for stands at its maker. */
struct synthetic_case {
  const char *name;
  struct synthetic *(*make)(void);
};
extern const struct synthetic_case synthetic_cases[];
extern const size_t synthetic_case_count;

#endif /* PM_TESTS_SYNTHETIC_VIEW_H */
