/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting code objects by where their file lies. */
#include "python/category.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char stdlib[PATH_MAX];

void pm__category_set_stdlib(const char *folder) { snprintf(stdlib, sizeof stdlib, "%s", folder); }

static bool starts_with(const char *text, const char *start) {
  return strncmp(text, start, strlen(start)) == 0;
}

static bool is_inside(const char *file, const char *folder) {
  size_t size = strlen(folder);
  return size > 0 && strncmp(file, folder, size) == 0 && file[size] == '/';
}

static bool is_installed(const char *file) {
  return strstr(file, "/site-packages/") != NULL || strstr(file, "/dist-packages/") != NULL;
}

/* The folder of this very library, when it lies in the package. */
static bool is_in_folder_of_library(const char *file, size_t folder) {
  Dl_info info;
  if (dladdr(&stdlib, &info) == 0 || info.dli_fname == NULL) return false;
  const char *slash = strrchr(info.dli_fname, '/');
  return slash != NULL && (size_t)(slash - info.dli_fname) == folder &&
         strncmp(file, info.dli_fname, folder) == 0;
}

/* Does the folder file[0..folder) hold a copy of the library (a source tree does)? */
static bool holds_library(const char *file, size_t folder) {
  char path[PATH_MAX];
  int size = snprintf(path, sizeof path, "%.*s/libpyrometer.so", (int)folder, file);
  return size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0;
}

/* Do the bytes before `at` end with `before`? */
static bool follows(const char *file, const char *at, const char *before) {
  size_t size = strlen(before);
  return (size_t)(at - file) >= size && strncmp(at - size, before, size) == 0;
}

/* A folder called "pyrometer" is ours if it was installed as a package or holds the library. */
static bool is_own(const char *file) {
  static const char name[] = "/pyrometer/";
  if (strcmp(file, "<pyrometer>") == 0) return true; /* the calibration's own code */
  const char *at = strstr(file, name);
  for (; at != NULL; at = strstr(at + 1, name)) {
    size_t folder = (size_t)(at - file) + sizeof name - 2; /* without the last slash */
    if (follows(file, at, "/site-packages") || follows(file, at, "/dist-packages") ||
        is_in_folder_of_library(file, folder) || holds_library(file, folder)) {
      return true;
    }
  }
  return false;
}

enum pm_code_category pm__category_of(const char *file) {
  if (file[0] == '\0') return PM_CATEGORY_UNKNOWN;
  if (is_own(file)) return PM_CATEGORY_OWN;
  if (starts_with(file, "<frozen ")) return PM_CATEGORY_STDLIB;
  if (file[0] == '<') return PM_CATEGORY_UNKNOWN;
  if (is_installed(file)) return PM_CATEGORY_EXTERNAL;
  if (is_inside(file, stdlib)) return PM_CATEGORY_STDLIB;
  return PM_CATEGORY_APPLICATION;
}
