/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of ours: the program's signals are not for them. */
#ifndef PM_BASE_THREAD_H
#define PM_BASE_THREAD_H

#include <pthread.h>

/* As pthread_create(3), its answer too, with all signals blocked from the thread's first moment. */
int pm__thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif /* PM_BASE_THREAD_H */
