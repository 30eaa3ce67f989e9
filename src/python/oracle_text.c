/* SPDX-License-Identifier: Apache-2.0 */
#include "python/oracle_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "python/codes.h"
#include "python/oracle_trail.h"
#include "python/python.h"

enum { INNERMOST = 64 }; /* frames of a stack that are written */

static struct {
  _Atomic uint32_t taken;
  _Atomic uint32_t ready[PM_ORACLE_EXAMPLES];
  char text[PM_ORACLE_EXAMPLES][PM_ORACLE_TEXT];
} kept;

struct writer {
  char *text;
  size_t used;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format,
                                                      ...) {
  size_t room = PM_ORACLE_TEXT - writer->used;
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(writer->text + writer->used, room, format, arguments);
  va_end(arguments);
  if (size > 0) writer->used += (size_t)size < room ? (size_t)size : room - 1;
}

static void put_code(struct writer *writer, uint32_t id) {
  const struct pm_code *code = pm__code_info(id);
  if (code == NULL) {
    put(writer, " > ?");
  } else {
    put(writer, " > %s:%u", code->qualname, code->line);
  }
}

/* Outermost first. Equal neighbours, as recursion makes them, are written once. */
static void put_ids(struct writer *writer, const uint32_t *ids, uint32_t count) {
  for (uint32_t i = 0, run = 1; i < count; i += run) {
    for (run = 1; i + run < count && ids[i + run] == ids[i]; run++) continue;
    put_code(writer, ids[i]);
    if (run > 1) put(writer, " x%u", run);
  }
}

static void put_true(struct writer *writer, const void *const *codes, uint32_t count) {
  uint32_t ids[INNERMOST];
  uint32_t written = count < INNERMOST ? count : INNERMOST;
  for (uint32_t i = 0; i < written; i++) ids[i] = pm__codes_find(codes[written - 1 - i]);
  put(writer, "true (%u):", count);
  put_ids(writer, ids, written);
}

static void put_shown(struct writer *writer, const struct pm_oracle_shown *shown) {
  uint32_t ids[INNERMOST];
  uint32_t written = shown->count < INNERMOST ? shown->count : INNERMOST;
  for (uint32_t i = 0; i < written; i++) ids[i] = shown->frames[shown->count - written + i].code;
  put(writer, "\nshown (%u):", shown->count + shown->skipped);
  put_ids(writer, ids, written);
}

/* The outermost frame in which the two differ, unless what differs is left out. */
static void put_difference(struct writer *writer, const void *const *codes, uint32_t count,
                           const struct pm_oracle_shown *shown) {
  for (uint32_t i = 0; i < shown->count; i++) {
    uint32_t at = i < shown->split ? i : i + shown->skipped;
    uint32_t id = at < count ? pm__codes_find(codes[count - 1 - at]) : 0;
    if (shown->frames[i].code == id) continue;
    put(writer, "\nat depth %u: true", at);
    put_code(writer, id);
    put(writer, ", shown");
    put_code(writer, shown->frames[i].code);
    return;
  }
}

static const char *name_of(enum pm_event kind) {
  static const char *const names[PM_EVENT_KINDS] = {
      [PM_EVENT_START] = "START",   [PM_EVENT_RESUME] = "RESUME", [PM_EVENT_THROW] = "THROW",
      [PM_EVENT_RETURN] = "RETURN", [PM_EVENT_YIELD] = "YIELD",   [PM_EVENT_UNWIND] = "UNWIND",
  };
  return names[kind];
}

/* What led to it, newest first: event, offset, where the callback stood, the shadow after. */
static void put_trail(struct writer *writer) {
  const struct pm_oracle_step *step;
  for (uint32_t back = 0; (step = pm__oracle_trail(back)) != NULL; back++) {
    put(writer, "\n  %s +%ld at %#lx:", name_of(step->kind), step->offset,
        (unsigned long)step->caller);
    put_code(writer, pm__codes_find(step->code));
    put(writer, ", then %u deep, innermost at %#lx", step->depth, (unsigned long)step->top);
  }
}

void pm__oracle_note(enum pm_event kind, const void *const *codes, uint32_t count,
                     const struct pm_oracle_shown *shown) {
  uint32_t at = atomic_fetch_add(&kept.taken, 1);
  if (at >= PM_ORACLE_EXAMPLES) return;
  struct writer writer = {.text = kept.text[at], .used = 0};
  put(&writer, "%s ", name_of(kind));
  put_true(&writer, codes, count);
  put_shown(&writer, shown);
  put_difference(&writer, codes, count, shown);
  put_trail(&writer);
  atomic_store(&kept.ready[at], 1);
}

void pm__oracle_examples(const char *examples[PM_ORACLE_EXAMPLES]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < PM_ORACLE_EXAMPLES; i++) {
    if (atomic_load(&kept.ready[i])) examples[count++] = kept.text[i];
  }
  while (count < PM_ORACLE_EXAMPLES) examples[count++] = NULL;
}
