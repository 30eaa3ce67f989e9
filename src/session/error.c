/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and version of the public interface. */
#include <pyrometer.h>

#ifndef PYROMETER_VERSION
#error "the build defines PYROMETER_VERSION"
#endif

const char *pyrometer_strerror(int error) {
  switch (error) {
#define PYROMETER_ERROR_TEXT(name, code, what, advice, exception) \
  case code: return what ": " advice;
    PYROMETER_ERROR_MAP(PYROMETER_ERROR_TEXT)
#undef PYROMETER_ERROR_TEXT
  default: return "unknown error: this code is not Pyrometer's";
  }
}

const char *pyrometer_version(void) { return PYROMETER_VERSION; }
