/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn is a name in the abstract socket namespace (unix(7)), made of the
 * descriptor's device and inode: one process has it at a time, it leaves nothing in the
 * file system, and the kernel gives it back whatever happens to its holder. Locks
 * on the descriptor itself would be shared by forked workers, or be the program's own.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "report/report.h"

enum { STEP_MS = 1 };

static bool name_of(int fd, struct sockaddr_un *name, socklen_t *size) {
  struct stat file;
  if (fstat(fd, &file) != 0) return false;
  *name = (struct sockaddr_un){.sun_family = AF_UNIX};
  int length = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "pyrometer-report-%llx-%llx",
                        (unsigned long long)file.st_dev, (unsigned long long)file.st_ino);
  *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  return true;
}

static int turn = -1; /* the socket that has the name */

void pm__report_take_turn(int fd, int patience_ms) {
  struct sockaddr_un name;
  socklen_t size;
  if (!name_of(fd, &name, &size)) return;
  turn = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (turn < 0) return;
  for (int waited = 0; bind(turn, (const struct sockaddr *)&name, size) != 0; waited += STEP_MS) {
    if (waited >= patience_ms || errno != EADDRINUSE) break;
    nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
  }
}

void pm__report_give_turn(void) {
  if (turn >= 0) close(turn);
  turn = -1;
}
