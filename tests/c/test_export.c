/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_export.c: writes every synthetic view in every format into the folder
 * argv[1], with its numbers in VIEW.truth, and tests how files are made.
 * tests/python/test_formats.py reads what is written here.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "export/export.h"
#include "pyrometer.h"
#include "synthetic_view.h"

static const char *const endings[] = {"sparkprofile", "pb.gz", "collapsed", "json"};

/* CPU, not wall time: the limit must hold on a busy machine too. */
static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static json_t *truth_of_thread(const struct pm_view *view, const struct pm_view_thread *thread) {
  json_t *windows = json_array();
  for (uint32_t w = 0; w < view->window_count; w++) {
    uint64_t sum = 0;
    for (uint32_t i = thread->first_node; i < thread->first_node + thread->node_count; i++) {
      sum +=
          view->nodes[i].depth == 0 ? view->total_by_window[(size_t)i * view->window_count + w] : 0;
    }
    json_array_append_new(windows, json_integer((json_int_t)sum));
  }
  return json_pack("{s:i, s:I, s:i, s:I, s:o}", "tid", thread->tid, "samples",
                   (json_int_t)thread->samples, "nodes", (int)thread->node_count, "cpu_ns",
                   (json_int_t)thread->cpu_ns, "window_ns", windows);
}

/* What the readers must find again, counted here and not by an exporter. */
static void write_truth(const struct pm_view *view, const char *path) {
  json_t *threads = json_array(), *selfs = json_array(), *windows = json_array();
  for (uint32_t i = 0; i < view->thread_count; i++) {
    json_array_append_new(threads, truth_of_thread(view, &view->threads[i]));
  }
  for (uint32_t i = 0; i < view->frame_count; i++) {
    json_array_append_new(selfs, json_integer((json_int_t)view->frames[i].self_ns));
  }
  for (uint32_t i = 0; i < view->window_count; i++) {
    json_array_append_new(windows, json_integer(view->windows[i].id));
  }
  json_t *truth = json_pack("{s:I, s:o, s:o, s:o}", "cpu_ns", (json_int_t)view->cpu_ns, "threads",
                            threads, "self_ns", selfs, "windows", windows);
  CHECK(json_dump_file(truth, path, 0) == 0);
  json_decref(truth);
}

static void write_case(const struct synthetic_case *made, const char *folder) {
  char path[4096];
  struct synthetic *s = made->make();
  const struct pm_view *view = synthetic_finish(s);
  snprintf(path, sizeof(path), "%s/%s.truth", folder, made->name);
  write_truth(view, path);
  for (size_t i = 0; i < PM_COUNT_OF(endings); i++) {
    snprintf(path, sizeof(path), "%s/%s.%s", folder, made->name, endings[i]);
    double start = now();
    CHECK(pm__export_file(view, pm__export_find(path), path) == 0);
    printf("timing %s %s %.4f s for %u nodes x %u windows\n", made->name, endings[i], now() - start,
           view->node_count, view->window_count);
  }
  synthetic_free(s);
}

static void test_find(void) {
  CHECK(pm__export_find("x.pb.gz") == pm__export_find("pb.gz"));
  CHECK(pm__export_find("/a.b/x.json") == pm__export_find("json"));
  CHECK(pm__export_find("a.sparkprofile") != NULL && pm__export_find("a.collapsed") != NULL);
  CHECK(pm__export_find("x.gz") == NULL && pm__export_find("json/x") == NULL);
  CHECK(pm__export_find("xjson") == NULL && pm__export_find("") == NULL);
  CHECK(pm__export_find("x.speedscope.json") == NULL);
}

static int refuse(void *context, const void *bytes, size_t size) {
  (void)bytes;
  size_t *left = context;
  if (*left < size) {
    return 1;
  }
  *left -= size;
  return 0;
}

/* A sink that gives up at any point ends the export with its own error. */
static void test_sink_errors(const struct pm_view *view) {
  for (size_t i = 0; i < PM_COUNT_OF(endings); i++) {
    for (size_t room = 0; room < 300; room += 50) {
      size_t left = room;
      int result = pm__export_find(endings[i])->write(view, refuse, &left);
      CHECK(result == PYROMETER_E_CALLBACK);
    }
  }
}

static int export_json(const struct pm_view *view, const char *path) {
  errno = 0;
  return pm__export_file(view, pm__export_find("json"), path);
}

static void test_regular(const struct pm_view *view) {
  struct stat status;
  CHECK(export_json(view, "new.json") == 0);
  CHECK(stat("new.json", &status) == 0 && (status.st_mode & 0777) == 0600);
  ino_t before = status.st_ino;
  CHECK(export_json(view, "new.json") == 0);
  CHECK(stat("new.json", &status) == 0 && status.st_ino != before);
  CHECK(export_json(view, "none/new.json") == PYROMETER_E_FILE && errno == ENOENT);
}

static void test_refused(const struct pm_view *view) {
  CHECK(symlink("new.json", "link.json") == 0);
  CHECK(export_json(view, "link.json") == PYROMETER_E_FILE && errno == ELOOP);
  CHECK(symlink("nowhere", "dangling.json") == 0);
  CHECK(export_json(view, "dangling.json") == PYROMETER_E_FILE && errno == ELOOP);
  CHECK(mkdir("folder.json", 0700) == 0);
  CHECK(export_json(view, "folder.json") == PYROMETER_E_FILE && errno == EISDIR);
  if (geteuid() == 0) {
    CHECK(export_json(view, "theirs.json") == 0 && chown("theirs.json", 12345, 12345) == 0);
    CHECK(export_json(view, "theirs.json") == PYROMETER_E_FILE && errno == EPERM);
  }
}

static void test_streams(const struct pm_view *view) {
  char byte;
  CHECK(export_json(view, "/dev/null") == 0);
  CHECK(export_json(view, "/dev/full") == PYROMETER_E_FILE && errno == ENOSPC);
  CHECK(mkfifo("fifo.json", 0600) == 0);
  CHECK(export_json(view, "fifo.json") == PYROMETER_E_FILE && errno == ENXIO);
  int reader = open("fifo.json", O_RDONLY | O_NONBLOCK);
  CHECK(export_json(view, "fifo.json") == 0);
  CHECK(read(reader, &byte, 1) == 1 && byte == '{');
  close(reader);
}

/* A symbolic link in /dev, but not one to refuse. */
static void test_stdout(const struct pm_view *view) {
  struct stat status;
  fflush(stdout);
  int before = dup(STDOUT_FILENO), file = open("stdout", O_WRONLY | O_CREAT, 0600);
  CHECK(dup2(file, STDOUT_FILENO) == STDOUT_FILENO);
  int result = export_json(view, "/dev/stdout");
  CHECK(dup2(before, STDOUT_FILENO) == STDOUT_FILENO);
  CHECK(result == 0 && fstat(file, &status) == 0 && status.st_size > 0);
  close(before);
  close(file);
}

static int reader_fd;

/* A format whose reader leaves in the middle. */
static int lose_reader(const struct pm_view *view, pm_export_sink sink, void *context) {
  (void)view;
  CHECK(sink(context, "x", 1) == 0);
  close(reader_fd);
  return sink(context, "y", 1) == 0 ? 0 : PYROMETER_E_CALLBACK;
}

/* SIGPIPE, which would end this test, must not come: neither now nor later. */
static void test_broken_pipe(const struct pm_view *view) {
  const struct pm_export_format format = {"test", lose_reader};
  sigset_t pending;
  reader_fd = open("fifo.json", O_RDONLY | O_NONBLOCK);
  CHECK(pm__export_file(view, &format, "fifo.json") == PYROMETER_E_FILE && errno == EPIPE);
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 0);
}

static int fail_late(const struct pm_view *view, pm_export_sink sink, void *context) {
  (void)view;
  CHECK(sink(context, "half a file", 11) == 0);
  return PYROMETER_E_MEMORY;
}

/* A failed export leaves the old file as it was, and nothing beside it. */
static void test_failed_export(const struct pm_view *view) {
  const struct pm_export_format format = {"test", fail_late};
  struct stat before, after;
  CHECK(stat("new.json", &before) == 0);
  CHECK(pm__export_file(view, &format, "new.json") == PYROMETER_E_MEMORY);
  CHECK(stat("new.json", &after) == 0);
  CHECK(before.st_ino == after.st_ino && before.st_size == after.st_size);
  CHECK(system("ls -A | grep -q '[.]tmp$'") != 0);
}

/* In a folder of its own, which the reader of the profiles does not look into. */
static void test_files(const struct pm_view *view, const char *folder) {
  CHECK(chdir(folder) == 0 && system("rm -rf files") == 0);
  CHECK(mkdir("files", 0700) == 0 && chdir("files") == 0);
  test_regular(view);
  test_refused(view);
  test_streams(view);
  test_stdout(view);
  test_broken_pipe(view);
  test_failed_export(view);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: test_export FOLDER\n");
    return 2;
  }
  CHECK(mkdir(argv[1], 0700) == 0 || errno == EEXIST);
  test_find();
  for (size_t i = 0; i < synthetic_case_count; i++) write_case(&synthetic_cases[i], argv[1]);
  struct synthetic *s = synthetic_cases[0].make();
  const struct pm_view *view = synthetic_finish(s);
  test_sink_errors(view);
  test_files(view, argv[1]);
  synthetic_free(s);
  return check_report();
}
