/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into a descriptor that belongs to the program: whole or not at all. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"

/*
 * A pipe that poll() calls writable has room for PIPE_BUF bytes, which is a row, so
 * the write neither blocks nor is cut. The collector has SIGPIPE blocked.
 */
bool pm__report_write(int fd, const char *row, size_t size, int patience_ms) {
  struct pollfd ready = {.fd = fd, .events = POLLOUT};
  int answered = poll(&ready, 1, patience_ms);
  if (answered != 1 || !(ready.revents & POLLOUT)) return false;
  ssize_t written;
  do {
    written = write(fd, row, size);
  } while (written < 0 && errno == EINTR);
  return written == (ssize_t)size;
}

void pm__report_tell(const char *format, ...) {
  enum { PATIENCE_MS = 100 };
  char row[PM_REPORT_ROW_MAX] = "pyrometer: ";
  size_t used = strlen(row), room = sizeof row - used - 1; /* one for the line break */
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(row + used, room, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  used += (size_t)size < room ? (size_t)size : room - 1;
  row[used++] = '\n';
  pm__report_write(2, row, used, PATIENCE_MS);
}
