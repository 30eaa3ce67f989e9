/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic loader's list of objects, read so that a fork never catches us at it.
 * glibc leaves the lock of dl_iterate_phdr as it was in a forked child: held by a
 * thread that is not there, it stops the child's next dlopen for ever. So the fork
 * waits until nobody is inside, microseconds. No Python is called with the lock
 * held, so it can be waited for with the GIL or with all threads stopped.
 */
#ifndef PM_BASE_LOADER_H
#define PM_BASE_LOADER_H

#include <link.h>

/* dl_iterate_phdr(3), its arguments and its answer. Not from a signal handler. */
int pm__loader_each(int (*visit)(struct dl_phdr_info *info, size_t size, void *context),
                    void *context);

/* For pthread_atfork(3): before, and after in the parent and in the child. */
void pm__loader_before_fork(void);
void pm__loader_after_fork(void);
void pm__loader_forked(void);

#endif
