/* SPDX-License-Identifier: Apache-2.0 */
/* See arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

struct pm_arena_block {
  struct pm_arena_block *next;
  size_t used, size;
  _Alignas(16) uint8_t bytes[];
};

static struct pm_arena_block *add_block(struct pm_arena *arena, size_t size) {
  size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;
  struct pm_arena_block *block = calloc(1, sizeof *block + bytes);
  if (block == NULL) {
    arena->failed = true;
    return NULL;
  }
  block->size = bytes;
  block->next = arena->blocks;
  arena->blocks = block;
  return block;
}

void *pm__arena_take(struct pm_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2) {
    arena->failed = true;
    return NULL;
  }
  size_t rounded = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  struct pm_arena_block *block = arena->blocks;
  if (block == NULL || block->size - block->used < rounded) block = add_block(arena, rounded);
  if (block == NULL) return NULL;
  void *taken = block->bytes + block->used;
  block->used += rounded;
  return taken;
}

const char *pm__text_copy(struct pm_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = pm__arena_take(arena, size, 1);
  return copy == NULL ? "" : memcpy(copy, text, size);
}

const char *pm__text_format(struct pm_arena *arena, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  char *text = length < 0 ? NULL : pm__arena_take(arena, (size_t)length + 1, 1);
  if (text == NULL) return "";
  va_start(arguments, format);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  va_end(arguments);
  return text;
}

void pm__arena_free(struct pm_arena *arena) {
  while (arena->blocks != NULL) {
    struct pm_arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
  arena->failed = false;
}
