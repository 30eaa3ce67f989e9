/* SPDX-License-Identifier: Apache-2.0 */
/* Reports switched by a signal, where no Python is there to handle it. */
#ifndef PM_SESSION_TOGGLE_H
#define PM_SESSION_TOGGLE_H

/*
 * From here on `number` calls `toggle`, on a thread of its own. A signal that the program
 * was started to ignore stays ignored.
 */
void pm__toggle_by(int number, void (*toggle)(void));

#endif /* PM_SESSION_TOGGLE_H */
