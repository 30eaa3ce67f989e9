/* SPDX-License-Identifier: Apache-2.0 */
/* Names for frames; see namer.h. The grammar of names is the design's, section 6. */
#include "profile/namer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/text.h"
#include "python/python.h"

enum { FIRST_SLOTS = 4096, NONE = UINT32_MAX };

struct object_list {
  const struct pm_object **seen;
  uint32_t count;
};

static void note_object(void *context, const struct pm_object *object) {
  struct object_list *list = context;
  if (object->id >= list->count) {
    uint32_t count = object->id * 2 + 64;
    const struct pm_object **bigger = realloc(list->seen, sizeof *bigger * count);
    if (bigger == NULL) return;
    memset(bigger + list->count, 0, sizeof *bigger * (count - list->count));
    list->seen = bigger;
    list->count = count;
  }
  list->seen[object->id] = object;
}

static uint32_t *filled(uint32_t count) {
  uint32_t *values = malloc(sizeof *values * (count == 0 ? 1 : count));
  for (uint32_t i = 0; values != NULL && i < count; i++) values[i] = NONE;
  return values;
}

static const char *hex_of(struct pm_namer *namer, const struct pm_object *object) {
  char *hex = pm__arena_take(namer->arena, (size_t)object->build_id_size * 2 + 1, 1);
  if (hex == NULL) return "";
  for (uint32_t i = 0; i < object->build_id_size; i++) {
    hex[2 * i] = "0123456789abcdef"[object->build_id[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[object->build_id[i] & 15];
  }
  return hex;
}

static uint32_t add_object(struct pm_namer *namer, const struct pm_object *object) {
  if (namer->object_index[object->id] != NONE) return namer->object_index[object->id];
  if (namer->object_count == namer->object_room) {
    uint32_t room = namer->object_room == 0 ? 32 : namer->object_room * 2;
    struct pm_view_object *bigger = realloc(namer->objects, sizeof *bigger * room);
    if (bigger == NULL) return NONE;
    namer->objects = bigger;
    namer->object_room = room;
  }
  namer->objects[namer->object_count] = (struct pm_view_object){
      .path = pm__text_clean(namer->arena, object->path),
      .build_id = hex_of(namer, object),
      .text_lo = object->text_lo,
      .text_hi = object->text_hi,
      .bias = object->bias,
  };
  return namer->object_index[object->id] = namer->object_count++;
}

static uint32_t interpreter_object(void) {
  uintptr_t inside = pm__python_address();
  if (inside == 0) return 0;
  struct pm_location at = pm__unwind_locate(inside);
  return at.object == NULL ? 0 : at.object->id;
}

bool pm__namer_init(struct pm_namer *namer, struct pm_arena *arena, struct pm_symbolizer *shared) {
  struct object_list objects = {0};
  pm__unwind_each_object(note_object, &objects);
  *namer = (struct pm_namer){
      .arena = arena,
      .symbolizer = shared != NULL ? shared : pm__symbolizer_new(),
      .owns_symbolizer = shared == NULL,
      .by_name = filled(FIRST_SLOTS),
      .slot_count = FIRST_SLOTS,
      .code_count = pm__code_count() + 1,
      .seen = objects.seen,
      .seen_count = objects.count,
  };
  namer->interpreter = interpreter_object();
  namer->by_code = filled(namer->code_count);
  namer->object_index = filled(namer->seen_count);
  bool ready = namer->symbolizer != NULL && namer->by_name != NULL && namer->by_code != NULL &&
               namer->object_index != NULL;
  /* The loader lists the executable first; readers of pprof take the first for the program. */
  if (ready && namer->seen_count > 1 && namer->seen[1] != NULL) add_object(namer, namer->seen[1]);
  return ready;
}

void pm__namer_free(struct pm_namer *namer) {
  if (namer->owns_symbolizer) pm__symbolizer_free(namer->symbolizer);
  free(namer->by_name);
  free(namer->by_key);
  free(namer->by_code);
  free(namer->seen);
  free(namer->object_index);
}

static uint64_t hash_text(uint64_t hash, const char *text) {
  for (; *text != '\0'; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
  return hash;
}

static uint32_t *find_slot(struct pm_namer *namer, const struct pm_view_frame *frame) {
  uint64_t hash = hash_text(hash_text(0xCBF29CE484222325u, frame->name), frame->file);
  uint32_t mask = namer->slot_count - 1;
  for (uint32_t i = (uint32_t)(hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
    uint32_t index = namer->by_name[i];
    if (index == NONE) return &namer->by_name[i];
    const struct pm_view_frame *other = &namer->frames[index];
    if (other->kind == frame->kind && strcmp(other->name, frame->name) == 0 &&
        strcmp(other->file, frame->file) == 0) {
      return &namer->by_name[i];
    }
  }
}

static bool grow(struct pm_namer *namer) {
  uint32_t room = namer->frame_room == 0 ? 256 : namer->frame_room * 2;
  struct pm_view_frame *frames = realloc(namer->frames, sizeof *frames * room);
  if (frames == NULL) return false;
  namer->frames = frames;
  namer->frame_room = room;
  if (room * 2 <= namer->slot_count) return true;
  uint32_t *slots = filled(room * 4);
  if (slots == NULL) return false;
  free(namer->by_name);
  namer->by_name = slots;
  namer->slot_count = room * 4;
  for (uint32_t i = 0; i < namer->frame_count; i++) *find_slot(namer, &frames[i]) = i;
  return true;
}

/* The index of a frame with this name, which is `frame` itself when it is new. */
static uint32_t intern(struct pm_namer *namer, const struct pm_view_frame *frame) {
  uint32_t *slot = find_slot(namer, frame);
  if (*slot != NONE) return *slot;
  if (namer->frame_count == namer->frame_room) {
    if (!grow(namer)) return NONE;
    slot = find_slot(namer, frame);
  }
  namer->frames[namer->frame_count] = *frame;
  return *slot = namer->frame_count++;
}

static const char *category_of(enum pm_code_category category) {
  static const char *const names[PM_CATEGORY_KINDS] = {
      [PM_CATEGORY_APPLICATION] = "application", [PM_CATEGORY_STDLIB] = "stdlib",
      [PM_CATEGORY_EXTERNAL] = "external",       [PM_CATEGORY_UNKNOWN] = "unknown",
      [PM_CATEGORY_OWN] = "pyrometer",
  };
  return names[category];
}

/* The top-level package of an installed module is its source. */
static const char *python_source(struct pm_namer *namer, const struct pm_code *code) {
  if (code->category != PM_CATEGORY_EXTERNAL) return "";
  return pm__text_format(namer->arena, "%.*s", (int)strcspn(code->module, "."), code->module);
}

/* For a native object under site-packages: the folder it was installed in, without ".libs". */
static const char *native_source(struct pm_namer *namer, const char *path) {
  const char *found = strstr(path, "/site-packages/");
  if (found == NULL) found = strstr(path, "/dist-packages/");
  if (found == NULL) return "";
  const char *package = found + strlen("/site-packages/");
  return pm__text_format(namer->arena, "%.*s", (int)strcspn(package, "./"), package);
}

/* Globals need have no __name__, and code may be named "". */
static const char *known_text(struct pm_arena *arena, const char *text) {
  return *text == '\0' ? "?" : pm__text_clean(arena, text);
}

static uint32_t name_code(struct pm_namer *namer, const struct pm_code *code) {
  struct pm_arena *arena = namer->arena;
  const char *module = known_text(arena, code->module);
  const char *qualname = known_text(arena, code->qualname);
  const char *file = pm__text_clean(arena, code->file);
  return intern(namer, &(struct pm_view_frame){
                           .kind = PM_FRAME_PYTHON,
                           .name = pm__text_format(arena, "%s.%s (%s:%u)", module, qualname, file,
                                                   code->line),
                           .function = qualname,
                           .module = module,
                           .file = file,
                           .line = code->line,
                           .category = category_of(code->category),
                           .source = python_source(namer, code),
                           .object = NONE,
                           .calls_exact = true,
                       });
}

static uint32_t name_pseudo(struct pm_namer *namer, const char *name, const char *category) {
  return intern(namer, &(struct pm_view_frame){.kind = PM_FRAME_PSEUDO,
                                               .name = name,
                                               .function = name,
                                               .module = "",
                                               .file = "",
                                               .category = category,
                                               .source = "",
                                               .object = NONE,
                                               .calls_exact = true});
}

static uint32_t name_python(struct pm_namer *namer, uint32_t id) {
  const struct pm_code *code = pm__code_info(id);
  if (code == NULL || id >= namer->code_count) {
    return name_pseudo(namer, "(unknown Python function)", "unknown");
  }
  if (namer->by_code[id] == NONE) namer->by_code[id] = name_code(namer, code);
  return namer->by_code[id];
}

bool pm__namer_is_c_library(const char *path) {
  static const char *const names[] = {"libc.so",  "libc-2.", "libm.so",   "libpthread",
                                      "ld-linux", "ld-musl", "libc.musl", "[vdso]"};
  const char *slash = strrchr(path, '/');
  const char *base = slash == NULL ? path : slash + 1;
  for (size_t i = 0; i < PM_COUNT_OF(names); i++) {
    if (strncmp(base, names[i], strlen(names[i])) == 0) return true;
  }
  return false;
}

static const char *symbol_of(struct pm_namer *namer, const struct pm_object *object, uint64_t rva) {
  const struct pm_symbol_file file = {
      .path = object->path,
      .image = strcmp(object->path, "[vdso]") == 0
                   ? (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR)
                   : NULL,
      .build_id = object->build_id,
      .build_id_size = object->build_id_size,
  };
  const char *symbol = pm__symbolizer_name(namer->symbolizer, &file, rva);
  /* Copied: the view outlives the symbolizer. */
  if (symbol != NULL) return pm__text_copy(namer->arena, pm__text_clean(namer->arena, symbol));
  return pm__text_format(namer->arena, "0x%llx", (unsigned long long)rva);
}

static uint32_t make_native(struct pm_namer *namer, struct pm_frame_key key) {
  const struct pm_object *object = key.id < namer->seen_count ? namer->seen[key.id] : NULL;
  if (object == NULL) return name_pseudo(namer, "[jit]", "native");
  const char *path = pm__text_clean(namer->arena, object->path);
  const char *slash = strrchr(path, '/');
  const char *base = slash != NULL ? slash + 1 : path;
  const char *symbol = symbol_of(namer, object, key.value);
  return intern(namer,
                &(struct pm_view_frame){
                    .kind = PM_FRAME_NATIVE,
                    .name = pm__text_format(namer->arena, "%s!%s", base, symbol),
                    .function = symbol,
                    .module = base,
                    .file = path,
                    .category = "native",
                    .source = native_source(namer, path),
                    .address = key.value,
                    .object = add_object(namer, object),
                    .calls_exact = true,
                    .runtime = object->id == namer->interpreter || pm__namer_is_c_library(base),
                });
}

static struct pm_named_key *find_key(struct pm_namer *namer, struct pm_frame_key key) {
  uint64_t hash = (key.value ^ (uint64_t)key.id << 48) * 0x9E3779B97F4A7C15u;
  uint32_t mask = namer->key_slots - 1;
  for (uint32_t i = (uint32_t)(hash >> 32) & mask;; i = (i + 1) & mask) {
    struct pm_named_key *slot = &namer->by_key[i];
    if (slot->frame == NONE || pm__frame_key_equal(slot->key, key)) return slot;
  }
}

static bool grow_keys(struct pm_namer *namer) {
  struct pm_named_key *old = namer->by_key;
  uint32_t old_slots = namer->key_slots, slots = old_slots == 0 ? FIRST_SLOTS : old_slots * 2;
  struct pm_named_key *bigger = malloc(sizeof *bigger * slots);
  if (bigger == NULL) return false;
  for (uint32_t i = 0; i < slots; i++) bigger[i].frame = NONE;
  namer->by_key = bigger;
  namer->key_slots = slots;
  for (uint32_t i = 0; i < old_slots; i++) {
    if (old[i].frame != NONE) *find_key(namer, old[i].key) = old[i];
  }
  free(old);
  return true;
}

/* A function stands in many nodes, and its name is work to make. */
static uint32_t name_native(struct pm_namer *namer, struct pm_frame_key key) {
  if (namer->key_count * 2 >= namer->key_slots && !grow_keys(namer)) return NONE;
  struct pm_named_key *slot = find_key(namer, key);
  if (slot->frame != NONE) return slot->frame;
  *slot = (struct pm_named_key){.key = key, .frame = make_native(namer, key)};
  namer->key_count += slot->frame != NONE;
  return slot->frame;
}

uint32_t pm__namer_frame(struct pm_namer *namer, struct pm_frame_key key) {
  static const char *const texts[PM_PSEUDO_KINDS] = {
#define PM_PSEUDO_TEXT(name, text) [PM_PSEUDO_##name] = (text),
      PM_PSEUDO_MAP(PM_PSEUDO_TEXT)
#undef PM_PSEUDO_TEXT
  };
  switch (key.kind) {
  case PM_KEY_PYTHON: return name_python(namer, key.id);
  case PM_KEY_NATIVE: return name_native(namer, key);
  default:
    if (key.id == PM_PSEUDO_TRUNCATED) {
      return name_pseudo(
          namer, pm__text_format(namer->arena, "[truncated %u]", namer->truncated_most), "unknown");
    }
    return name_pseudo(namer, texts[key.id], key.id == PM_PSEUDO_PRUNED ? "unknown" : "pyrometer");
  }
}

void pm__namer_add_calls(struct pm_namer *namer, const uint64_t *before, uint32_t before_count,
                         double share) {
  for (uint32_t id = 1; id < namer->code_count; id++) {
    const struct pm_code *code = pm__code_info(id);
    uint64_t calls = code == NULL ? 0 : pm__code_calls(id);
    if (id < before_count) calls -= before[id];
    if (calls == 0 || code->category == PM_CATEGORY_OWN) continue;
    uint32_t index = name_python(namer, id);
    if (index == NONE) continue;
    struct pm_view_frame *frame = &namer->frames[index];
    frame->calls += (uint64_t)((double)calls / share + 0.5);
  }
  for (uint32_t i = 0; i < namer->frame_count; i++) {
    namer->frames[i].calls_exact = namer->frames[i].calls_exact && share >= 1.0;
  }
}
