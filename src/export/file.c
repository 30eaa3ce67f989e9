/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c: an export into a file that nobody ever sees half written.
 *
 * Profiles go to shared folders such as /tmp, often as root: so the file is made
 * under a name that cannot be guessed, for its owner only, no symbolic link is
 * followed, and what is replaced must be a regular file of ours. A device or FIFO
 * is what the user wants to write into, so that is written in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "export/export.h"
#include "pyrometer.h"

enum { TEMPORARY_NAMES = 16 };

/* The sink: an open file, and why writing it failed. */
struct target {
  int fd;
  int error;
};

static int put(void *context, const void *bytes, size_t size) {
  struct target *target = context;
  while (size > 0) {
    ssize_t written = write(target->fd, bytes, size);
    if (written < 0 && errno != EINTR) {
      target->error = errno;
      return -1;
    }
    if (written > 0) {
      bytes = (const char *)bytes + written;
      size -= (size_t)written;
    }
  }
  return 0;
}

/* Ends with errno as the target knows it: clean-up calls have changed it since. */
static int outcome(const struct target *target, int written) {
  if (target->error == 0) {
    return written;
  }
  errno = target->error;
  return PYROMETER_E_FILE;
}

static int file_error(int error) {
  errno = error;
  return PYROMETER_E_FILE;
}

static void close_target(struct target *target) {
  if (close(target->fd) != 0 && errno != EINTR && target->error == 0) {
    target->error = errno;
  }
}

/* ".pyrometer-<16 hex>.tmp" in the folder of `path`; NULL: no memory. */
static char *temporary_name(const char *path) {
  static const char name[] = ".pyrometer-0123456789abcdef.tmp";
  const char *slash = strrchr(path, '/');
  size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0) {
    random = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
  }
  char *made = malloc(folder + sizeof(name));
  if (made != NULL) {
    memcpy(made, path, folder);
    snprintf(made + folder, sizeof(name), ".pyrometer-%016llx.tmp", (unsigned long long)random);
  }
  return made;
}

/* Opens a new file beside `path`, its name in `*name` (to be freed); -1 with errno. */
static int open_temporary(const char *path, char **name) {
  int fd = -1;
  for (int i = 0; i < TEMPORARY_NAMES && fd < 0; i++) {
    *name = temporary_name(path);
    if (*name == NULL) {
      errno = ENOMEM;
      return -1;
    }
    fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
      free(*name);
      if (errno != EEXIST) {
        return -1;
      }
    }
  }
  return fd;
}

static int replace(const struct pm_view *view, const struct pm_export_format *format,
                   const char *path) {
  char *name;
  struct target target = {.fd = open_temporary(path, &name)};
  if (target.fd < 0) {
    return PYROMETER_E_FILE;
  }
  int written = format->write(view, put, &target);
  close_target(&target);
  if (written == 0 && target.error == 0 && rename(name, path) != 0) {
    target.error = errno;
  }
  if (written != 0 || target.error != 0) {
    unlink(name);
  }
  free(name);
  return outcome(&target, written);
}

/* A FIFO whose reader leaves must not kill the process: SIGPIPE is held and taken away. */
static int write_without_sigpipe(const struct pm_view *view, const struct pm_export_format *format,
                                 struct target *target) {
  sigset_t pipe_only, before, pending;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
  int written = format->write(view, put, target);
  if (target->error == EPIPE && !sigismember(&pending, SIGPIPE)) {
    sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return written;
}

static bool is_stream(mode_t mode) { return S_ISCHR(mode) || S_ISFIFO(mode); }

/* Non-blocking to open, so that a FIFO without a reader is an error and not a wait for
 * ever. */
static int open_stream(const char *path) {
  struct stat status;
  int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return -1;
  }
  if (fstat(fd, &status) != 0 || !is_stream(status.st_mode) || fcntl(fd, F_SETFL, 0) != 0) {
    close(fd);
    errno = EINVAL;
    return -1;
  }
  return fd;
}

static int write_stream(const struct pm_view *view, const struct pm_export_format *format, int fd) {
  struct target target = {.fd = fd};
  if (fd < 0) {
    return PYROMETER_E_FILE;
  }
  int written = write_without_sigpipe(view, format, &target);
  close_target(&target);
  return outcome(&target, written);
}

/* What an existing file that is no stream stands in the way for; 0: replace it. */
static int refusal(const struct stat *status) {
  if (S_ISREG(status->st_mode)) {
    return status->st_uid == geteuid() ? 0 : EPERM;
  }
  if (S_ISLNK(status->st_mode)) {
    return ELOOP;
  }
  return S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
}

int pm__export_file(const struct pm_view *view, const struct pm_export_format *format,
                    const char *path) {
  struct stat status;
  if (strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0) {
    int fd = path[8] == 'o' ? STDOUT_FILENO : STDERR_FILENO; /* symbolic links to these */
    return write_stream(view, format, fcntl(fd, F_DUPFD_CLOEXEC, 3));
  }
  if (lstat(path, &status) != 0) {
    return errno == ENOENT ? replace(view, format, path) : PYROMETER_E_FILE;
  }
  if (is_stream(status.st_mode)) {
    return write_stream(view, format, open_stream(path));
  }
  int refused = refusal(&status);
  return refused == 0 ? replace(view, format, path) : file_error(refused);
}
