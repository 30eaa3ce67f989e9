/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling by libiberty's callback functions. Its other ones end the process
 * when memory runs out, which a guest in somebody's process must not.
 */
#include "symbol/demangle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

enum {
  NAME_MAX_BYTES = 4096,
  SHORT_NAME = 200, /* these need up to 132 kB of stack, Rust's with the most recursion */
  STACK_BYTES_OF_LETTER = 512 /* measured: 424 for each letter of a C++ name of pointers */
};

/* What GCC and LLVM put behind a function's name when they split or copy it. */
static const char *const suffixes[] = {"cold",     "part", "isra",      "constprop",
                                       "lto_priv", "llvm", "localalias"};

/* A suffix ends the name or stands before ".0"; in ".." of a Rust path a dot is no border. */
static bool is_suffix(const char *dot) {
  for (size_t i = 0; i < PM_COUNT_OF(suffixes); i++) {
    size_t length = strlen(suffixes[i]);
    if (strncmp(dot + 1, suffixes[i], length) != 0) continue;
    const char *end = dot + 1 + length;
    if (end[0] == '\0' || (end[0] == '.' && end[1] != '.')) return true;
  }
  return false;
}

/* The length without "@VERSION" and without the first suffix and all behind it. */
static size_t length_of_stem(const char *symbol) {
  size_t length = strcspn(symbol, "@");
  for (size_t i = 1; i < length; i++)
    if (symbol[i] == '.' && symbol[i - 1] != '.' && is_suffix(symbol + i)) return i;
  return length > 0 ? length : strlen(symbol);
}

struct output {
  jmp_buf too_long;
  size_t used;
  char text[NAME_MAX_BYTES];
};

/*
 * A few bytes of mangled name can stand for gigabytes, and the demangler has no
 * way to be told to stop. It holds nothing, so it may be left by a jump.
 */
static void append(const char *text, size_t size, void *context) {
  struct output *output = context;
  if (size >= NAME_MAX_BYTES - output->used) longjmp(output->too_long, 1);
  memcpy(output->text + output->used, text, size);
  output->used += size;
}

/*
 * The demangler calls itself for each level of a type. Names are read on threads
 * that we do not choose too (pyrometer_export), and on stacks that are nobody's.
 */
static bool has_stack_for(size_t length) {
  if (length <= SHORT_NAME) return true;
  pthread_attr_t attributes;
  void *low = NULL;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return false;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  uintptr_t room = here - (uintptr_t)low; /* wraps to a large value below the stack */
  return room < size && room > length * STACK_BYTES_OF_LETTER;
}

/* Rust first: its older names are C++ names too, but then carry a hash. */
static bool demangle(const char *mangled, struct output *output) {
  output->used = 0;
  if (setjmp(output->too_long) != 0) return false;
  if (rust_demangle_callback(mangled, DMGL_PARAMS, append, output) == 0) {
    output->used = 0;
    if (cplus_demangle_v3_callback(mangled, DMGL_PARAMS | DMGL_ANSI, append, output) == 0)
      return false;
  }
  output->text[output->used] = '\0';
  return output->used > 0;
}

char *pm__demangle_name(const char *symbol) {
  char *stem = strndup(symbol, length_of_stem(symbol));
  if (stem == NULL || stem[0] != '_') return stem; /* every mangling starts with one */
  if (!has_stack_for(strlen(stem))) return stem;
  struct output output;
  if (!demangle(stem, &output)) return stem;
  free(stem);
  return strdup(output.text);
}
