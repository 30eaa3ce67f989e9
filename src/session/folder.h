/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of profiles: one .sparkprofile an interval of the log reporter, the last
 * PM_FOLDER_FILES of this process. Collector thread, but for configure; no lock, no GIL.
 */
#ifndef PM_SESSION_FOLDER_H
#define PM_SESSION_FOLDER_H

#include "base/base.h"
#include "profile/view.h"

enum { PM_FOLDER_FILES = 60 };

/*
 * Sets the folder, NULL: none, and makes it when it is not there (mode 0700). One that is
 * not good is told of on standard error, now and whenever that changes.
 */
void pm__folder_configure(const char *path);
/* Does anybody want files? */
bool pm__folder_is_set(void);
/* Writes pyrometer-<pid>-<window>.sparkprofile and removes the one that is too old. */
void pm__folder_write(const struct pm_view *view, uint32_t window);

#endif /* PM_SESSION_FOLDER_H */
