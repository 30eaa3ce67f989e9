/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into a descriptor that belongs to the program: whole or not at all. */
#include <errno.h>
#include <poll.h>
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
