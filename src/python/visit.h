/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which interpreter we speak to: always the main one. Each subinterpreter has its
 * own sys.monitoring, objects and maybe GIL; our objects belong to the main one, and
 * so nothing of ours is ever registered, called or released in another.
 */
#ifndef PM_PYTHON_VISIT_H
#define PM_PYTHON_VISIT_H

#include "base/base.h"

/* A stay in the main interpreter, with its GIL. */
struct pm_visit {
  int gil;       /* of PyGILState_Ensure, unless `made` */
  void *made;    /* a thread state for a thread that runs in a subinterpreter */
  void *own;     /* that thread's own state */
  bool attached; /* `own` was in use, not let go of around the call */
};

/* False without memory; then there is nothing to leave. The interpreter must be usable. */
bool pm__visit_begin(struct pm_visit *visit);
void pm__visit_end(const struct pm_visit *visit);

/* Is there another interpreter beside the main one? Any thread, no GIL. */
bool pm__visit_has_others(void);

/* The caller's thread state if it holds the GIL (is attached), else NULL. */
void *pm__visit_attached(void);

#endif /* PM_PYTHON_VISIT_H */
