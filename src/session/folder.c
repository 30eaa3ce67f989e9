/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See folder.h. The folder is opened and looked at for every file, and the file is made
 * through that descriptor: rights may be dropped and folders replaced meanwhile.
 */
#include "session/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "export/export.h"
#include "report/report.h"

enum { PATIENCE_MS = 100, OTHERS_WRITE = -1, OF_SOMEBODY_ELSE = -2 }; /* beside errno's values */

static struct {
  char path[PATH_MAX];
  int told; /* the last trouble that was told of, 0: none */
} folder;

static const char *text_of(int trouble) {
  if (trouble == OTHERS_WRITE) return "everybody may write there (chmod o-w)";
  if (trouble == OF_SOMEBODY_ELSE) return "it belongs to somebody else";
  return trouble == ELOOP ? "it is a symbolic link" : strerror(trouble);
}

static void tell(int trouble) {
  if (trouble == folder.told) return;
  folder.told = trouble;
  if (trouble == 0) return;
  struct pm_arena arena = {0};
  pm__report_tell("no profiles in \"output\": \"%.3000s\": %s", pm__text_clean(&arena, folder.path),
                  text_of(trouble));
  pm__arena_free(&arena);
}

/* What is wrong with an open folder; 0: nothing. */
static int trouble_with(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return errno;
  if (status.st_uid != geteuid() && status.st_uid != 0) return OF_SOMEBODY_ELSE;
  if (status.st_mode & S_IWOTH) return OTHERS_WRITE;
  return faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* The open folder, or -1 and the trouble. */
static int open_folder(int *trouble) {
  int fd = open(folder.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (fd < 0) {
    *trouble = errno;
    bool link = lstat(folder.path, &status) == 0 && S_ISLNK(status.st_mode);
    if (link) *trouble = ELOOP;
    return -1;
  }
  *trouble = trouble_with(fd);
  if (*trouble == 0) return fd;
  close(fd);
  return -1;
}

void pm__folder_configure(const char *path) {
  int trouble, fd;
  folder.told = 0;
  folder.path[0] = '\0';
  if (path == NULL || path[0] == '\0') return;
  snprintf(folder.path, sizeof folder.path, "%s", path);
  mkdir(folder.path, 0700);
  fd = open_folder(&trouble);
  tell(trouble);
  if (fd >= 0) close(fd);
}

bool pm__folder_is_set(void) { return folder.path[0] != '\0'; }

static void name_file(char *out, size_t size, uint32_t window) {
  snprintf(out, size, "pyrometer-%d-%u.sparkprofile", (int)getpid(), window);
}

static int write_into(int fd, const struct pm_view *view, uint32_t window) {
  char name[64], path[128];
  name_file(name, sizeof name, window);
  snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, name);
  if (pm__export_file(view, pm__export_find(path), path) != 0) return errno == 0 ? ENOMEM : errno;
  if (window <= PM_FOLDER_FILES) return 0;
  name_file(name, sizeof name, window - PM_FOLDER_FILES);
  unlinkat(fd, name, 0);
  return 0;
}

void pm__folder_write(const struct pm_view *view, uint32_t window) {
  int trouble;
  int fd = open_folder(&trouble);
  if (fd >= 0) {
    errno = 0;
    trouble = write_into(fd, view, window);
    close(fd);
  }
  tell(trouble);
}
