/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens around every fork(2) of the program; vfork and posix_spawn run none of it.
 *
 * Our signal is blocked in the thread that forks: while a large process is copied its timer
 * expires again and again, and kernels that begin the copy anew for a signal would never end.
 * The mask is put back in the parent and in the child.
 */
#ifndef PM_SESSION_FORK_H
#define PM_SESSION_FORK_H

struct pm_fork_hooks {
  void (*before)(void);
  void (*in_parent)(void);
  void (*in_child)(void);
};

/* From now on; once a process. `hooks` stays the caller's and constant. */
void pm__fork_watch(const struct pm_fork_hooks *hooks);

#endif /* PM_SESSION_FORK_H */
