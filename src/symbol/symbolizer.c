/* SPDX-License-Identifier: Apache-2.0 */
/* The files seen so far, each read once, and the names given out. */
#include <stdlib.h>
#include <string.h>

#include "symbol/debugfile.h"
#include "symbol/demangle.h"
#include "symbol/index.h"
#include "symbol/symbol.h"

enum { BUCKETS = 256 };
static const char default_debug_root[] = "/usr/lib/debug";

struct file {
  struct file *next;
  const void *image;
  struct pm_index index; /* empty when the file could not be used: that is not tried again */
  char **names;          /* by symbol; NULL until asked for */
  size_t path_size;      /* with NUL */
  size_t build_id_size;
  uint8_t key[]; /* path, build-id */
};

struct pm_symbolizer {
  char *debug_root;
  struct file *buckets[BUCKETS];
};

struct pm_symbolizer *pm__symbolizer_new(void) {
  struct pm_symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
  if (symbolizer == NULL) return NULL;
  if (pm__symbolizer_set_debug_root(symbolizer, default_debug_root)) return symbolizer;
  free(symbolizer);
  return NULL;
}

bool pm__symbolizer_set_debug_root(struct pm_symbolizer *symbolizer, const char *root) {
  char *copy = strdup(root);
  if (copy == NULL) return false;
  free(symbolizer->debug_root);
  symbolizer->debug_root = copy;
  return true;
}

static void free_file(struct file *file) {
  for (uint32_t i = 0; file->names != NULL && i < file->index.count; i++) free(file->names[i]);
  free(file->names);
  pm__index_free(&file->index);
  free(file);
}

void pm__symbolizer_free(struct pm_symbolizer *symbolizer) {
  if (symbolizer == NULL) return;
  for (size_t i = 0; i < BUCKETS; i++) {
    struct file *next;
    for (struct file *file = symbolizer->buckets[i]; file != NULL; file = next) {
      next = file->next;
      free_file(file);
    }
  }
  free(symbolizer->debug_root);
  free(symbolizer);
}

static bool is_vdso(const struct pm_symbol_file *wanted) {
  return strcmp(wanted->path, "[vdso]") == 0;
}

/* FNV-1a. */
static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t size) {
  const uint8_t *byte = bytes;
  for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 16777619u;
  return hash;
}

static struct file **bucket_of(struct pm_symbolizer *symbolizer,
                               const struct pm_symbol_file *wanted) {
  uint32_t hash = hash_bytes(2166136261u, wanted->path, strlen(wanted->path));
  hash = hash_bytes(hash, wanted->build_id, wanted->build_id_size);
  return &symbolizer->buckets[(hash ^ hash >> 16) % BUCKETS];
}

static bool is_file(const struct file *file, const struct pm_symbol_file *wanted) {
  if (strcmp((const char *)file->key, wanted->path) != 0) return false;
  if (file->image != (is_vdso(wanted) ? wanted->image : NULL)) return false;
  return file->build_id_size == wanted->build_id_size &&
         (wanted->build_id_size == 0 ||
          memcmp(file->key + file->path_size, wanted->build_id, wanted->build_id_size) == 0);
}

static struct file *new_file(const struct pm_symbol_file *wanted) {
  size_t path_size = strlen(wanted->path) + 1;
  struct file *file = calloc(1, sizeof *file + path_size + wanted->build_id_size);
  if (file == NULL) return NULL;
  file->image = is_vdso(wanted) ? wanted->image : NULL;
  file->path_size = path_size;
  file->build_id_size = wanted->build_id_size;
  memcpy(file->key, wanted->path, path_size);
  if (wanted->build_id_size > 0)
    memcpy(file->key + path_size, wanted->build_id, wanted->build_id_size);
  return file;
}

static bool open_file(struct pm_elf *object, const struct pm_symbol_file *wanted) {
  bool opened = is_vdso(wanted) ? pm__object_open_image(object, wanted->image)
                                : pm__object_open(object, wanted->path);
  if (!opened) return false;
  if (wanted->build_id_size == 0 ||
      pm__object_has_build_id(object, wanted->build_id, wanted->build_id_size))
    return true;
  pm__object_close(object);
  return false;
}

static void load_index(struct pm_index *index, const struct pm_symbol_file *wanted,
                       const char *debug_root) {
  struct pm_elf object, debug;
  if (!open_file(&object, wanted)) return;
  pm__index_add(index, &object, SHT_SYMTAB);
  if (index->count == 0 && pm__debugfile_open(&debug, &object, wanted->path, debug_root)) {
    pm__index_add(index, &debug, SHT_SYMTAB);
    pm__object_close(&debug);
  }
  pm__index_add(index, &object, SHT_DYNSYM); /* a stripped .symtab may lack what this one has */
  pm__index_add_stubs(index, &object);
  pm__object_close(&object);
  pm__index_finish(index);
}

static struct file *find_file(struct pm_symbolizer *symbolizer,
                              const struct pm_symbol_file *wanted) {
  struct file **bucket = bucket_of(symbolizer, wanted);
  for (struct file *file = *bucket; file != NULL; file = file->next)
    if (is_file(file, wanted)) return file;
  struct file *file = new_file(wanted);
  if (file == NULL) return NULL;
  load_index(&file->index, wanted, symbolizer->debug_root);
  file->next = *bucket;
  *bucket = file;
  return file;
}

const char *pm__symbolizer_name(struct pm_symbolizer *symbolizer,
                                const struct pm_symbol_file *wanted, uint64_t rva) {
  if (wanted->path == NULL) return NULL;
  struct file *file = find_file(symbolizer, wanted);
  uint32_t symbol = file != NULL ? pm__index_find(&file->index, rva) : PM_INDEX_NONE;
  if (symbol == PM_INDEX_NONE) return NULL;
  if (file->names == NULL) file->names = calloc(file->index.count, sizeof *file->names);
  if (file->names == NULL) return NULL;
  if (file->names[symbol] == NULL)
    file->names[symbol] = pm__demangle_name(pm__index_name(&file->index, symbol));
  return file->names[symbol];
}
