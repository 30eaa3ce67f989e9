/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols: which name an address gets, from which file, and that no file can hurt. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "elf_fixture.h"
#include "symbol/object.h"
#include "symbol/symbol.h"

#define RUST_LEGACY "_ZN4heat4core5solve17h0123456789abcdefE"
#define RUST_V0 "_RNvNtCs1234_7mycrate3foo3bar"

/* Functions of this program with the names a C++ and a Rust compiler give. */
__asm__(".pushsection .text\n"
        ".globl _ZN4heat4burnEi\n.type _ZN4heat4burnEi, %function\n"
        "_ZN4heat4burnEi: .zero 16\n.size _ZN4heat4burnEi, 16\n"
        ".globl " RUST_LEGACY "\n.type " RUST_LEGACY ", %function\n" RUST_LEGACY
        ": .zero 16\n.size " RUST_LEGACY ", 16\n"
        ".globl " RUST_V0 "\n.type " RUST_V0 ", %function\n" RUST_V0 ": .zero 16\n.size " RUST_V0
        ", 16\n"
        ".popsection\n");
extern const char cpp_function[] __asm__("_ZN4heat4burnEi");
extern const char rust_legacy_function[] __asm__(RUST_LEGACY);
extern const char rust_v0_function[] __asm__(RUST_V0);

static const uint8_t id_a[FIXTURE_ID] = {0xab, 0xcd, 1, 2, 3}, id_b[FIXTURE_ID] = {0xab, 0xcd, 9};
static char folder[64];

/* A path in the test's folder, valid until the end. */
static const char *in_folder(const char *name) {
  static char paths[16][sizeof folder + 96];
  static size_t used;
  char path[sizeof paths[0]];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  for (size_t i = 0; i < used; i++)
    if (strcmp(paths[i], path) == 0) return paths[i];
  if (used == PM_COUNT_OF(paths)) abort();
  return strcpy(paths[used++], path);
}

static void write_file(const char *path, const void *bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  close(fd);
}

static void write_fixture(const char *path, const struct fixture *fixture) {
  struct fixture_file file;
  fixture_make(&file, fixture);
  write_file(path, file.bytes, file.size);
}

static struct pm_symbolizer *new_symbolizer(void) {
  struct pm_symbolizer *symbolizer = pm__symbolizer_new();
  CHECK(symbolizer != NULL && pm__symbolizer_set_debug_root(symbolizer, in_folder("debug")));
  return symbolizer;
}

/* What a fresh symbolizer says, copied. */
static const char *name_once(const char *path, const uint8_t *build_id, uint64_t rva) {
  static char copy[4][256];
  static int turn;
  struct pm_symbol_file file = {path, NULL, build_id, build_id != NULL ? FIXTURE_ID : 0};
  struct pm_symbolizer *symbolizer = new_symbolizer();
  const char *name = pm__symbolizer_name(symbolizer, &file, rva);
  char *result = copy[turn++ % 4];
  if (name != NULL) snprintf(result, sizeof copy[0], "%s", name);
  pm__symbolizer_free(symbolizer);
  return name != NULL ? result : NULL;
}

static void test_choice_of_symbol(void) {
  const struct fixture_symbol symbols[] = {
      {"plain", 0x1000, 0x40, STT_FUNC, STB_GLOBAL},
      {"loop_label", 0x1010, 0, STT_NOTYPE, STB_LOCAL},   /* inside a sized one */
      {"__write", 0x1080, 0x20, STT_FUNC, STB_GLOBAL},    /* aliases */
      {"write", 0x1080, 0x20, STT_FUNC, STB_WEAK},
      {"local_twin", 0x10c0, 0x10, STT_FUNC, STB_LOCAL},
      {"global_twin", 0x10c0, 0x10, STT_FUNC, STB_GLOBAL},
      {"unsized", 0x1100, 0, STT_FUNC, STB_GLOBAL},       /* to the next one */
      {"outer", 0x1180, 0x100, STT_FUNC, STB_GLOBAL},
      {"inner", 0x11c0, 0x20, STT_FUNC, STB_LOCAL},
      {"copy", 0x1300, 0x20, STT_GNU_IFUNC, STB_GLOBAL},
      {"$x", 0x1340, 0, STT_NOTYPE, STB_LOCAL},
      {"huge", 0x1400, UINT64_MAX, STT_FUNC, STB_GLOBAL}, /* cut at the section's end */
      {"data", 0x1338, 8, STT_OBJECT, STB_GLOBAL},
      {"elsewhere", 0x5000, 8, STT_FUNC, STB_GLOBAL},     /* in no text section */
      {"assembly", 0x13c0, 0, STT_NOTYPE, STB_GLOBAL},
  };
  const char *path = in_folder("choice");
  write_fixture(path, &(struct fixture){symbols, PM_COUNT_OF(symbols), SHT_SYMTAB, NULL, NULL, 0});
  CHECK_EQ_STR(name_once(path, NULL, 0x0fff), NULL);
  CHECK_EQ_STR(name_once(path, NULL, 0x1000), "plain");
  CHECK_EQ_STR(name_once(path, NULL, 0x1010), "plain");
  CHECK_EQ_STR(name_once(path, NULL, 0x103f), "plain");
  CHECK_EQ_STR(name_once(path, NULL, 0x1040), NULL);
  CHECK_EQ_STR(name_once(path, NULL, 0x1090), "write");
  CHECK_EQ_STR(name_once(path, NULL, 0x10c8), "global_twin");
  CHECK_EQ_STR(name_once(path, NULL, 0x117f), "unsized");
  CHECK_EQ_STR(name_once(path, NULL, 0x1180), "outer");
  CHECK_EQ_STR(name_once(path, NULL, 0x11c0), "inner");
  CHECK_EQ_STR(name_once(path, NULL, 0x11e0), "outer");
  CHECK_EQ_STR(name_once(path, NULL, 0x1280), NULL);
  CHECK_EQ_STR(name_once(path, NULL, 0x1310), "copy");
  CHECK_EQ_STR(name_once(path, NULL, 0x1340), NULL);
  CHECK_EQ_STR(name_once(path, NULL, 0x13ff), "assembly");
  CHECK_EQ_STR(name_once(path, NULL, 0x1fff), "huge");
  CHECK_EQ_STR(name_once(path, NULL, 0x2000), NULL);
  CHECK_EQ_STR(name_once(path, NULL, 0x5000), NULL);
}

static void test_replaced_file(void) {
  const struct fixture_symbol symbol = {"f", 0x1000, 0x10, STT_FUNC, STB_GLOBAL};
  const char *path = in_folder("replaced");
  write_fixture(path, &(struct fixture){&symbol, 1, SHT_DYNSYM, id_b, NULL, 0});
  CHECK_EQ_STR(name_once(path, id_b, 0x1000), "f");
  CHECK_EQ_STR(name_once(path, NULL, 0x1000), "f");
  CHECK_EQ_STR(name_once(path, id_a, 0x1000), NULL);
  write_fixture(path, &(struct fixture){&symbol, 1, SHT_DYNSYM, NULL, NULL, 0});
  CHECK_EQ_STR(name_once(path, id_b, 0x1000), NULL);
}

/* One symbolizer reads a file once, even when it changes meanwhile. */
static void test_one_load(void) {
  const struct fixture_symbol symbol = {"f", 0x1000, 0x10, STT_FUNC, STB_GLOBAL};
  const char *path = in_folder("once");
  struct pm_symbol_file file = {path, NULL, NULL, 0};
  write_fixture(path, &(struct fixture){&symbol, 1, SHT_SYMTAB, id_a, NULL, 0});
  struct pm_symbolizer *symbolizer = new_symbolizer();
  const char *name = pm__symbolizer_name(symbolizer, &file, 0x1000);
  CHECK_EQ_STR(name, "f");
  unlink(path);
  CHECK(pm__symbolizer_name(symbolizer, &file, 0x1008) == name);
  CHECK(pm__symbolizer_name(symbolizer, &file, 0x1010) == NULL);
  file.build_id = id_b; /* another file for the symbolizer */
  file.build_id_size = FIXTURE_ID;
  CHECK(pm__symbolizer_name(symbolizer, &file, 0x1000) == NULL);
  pm__symbolizer_free(symbolizer);
}

static void test_no_file(void) {
  CHECK_EQ_STR(name_once("", NULL, 0), NULL);
  CHECK_EQ_STR(name_once(NULL, NULL, 0), NULL);
  CHECK_EQ_STR(name_once("/nonexistent", NULL, 0), NULL);
  CHECK_EQ_STR(name_once("/", NULL, 0), NULL);
  CHECK_EQ_STR(name_once("[vdso]", NULL, 0), NULL);
  CHECK(mkfifo(in_folder("fifo"), 0600) == 0);
  CHECK_EQ_STR(name_once(in_folder("fifo"), NULL, 0), NULL);
  pm__symbolizer_free(NULL);
}

static void test_debug_file_by_build_id(void) {
  const struct fixture_symbol symbol = {"hidden", 0x1000, 0x10, STT_FUNC, STB_LOCAL};
  const struct fixture_symbol shown = {"shown", 0x1100, 0x10, STT_FUNC, STB_GLOBAL};
  const char *path = in_folder("stripped");
  const char *debug = in_folder("debug/.build-id/ab/cd01020300000000000000000000000000"
                                "0000.debug");
  write_fixture(path, &(struct fixture){&shown, 1, SHT_DYNSYM, id_a, NULL, 0});
  CHECK_EQ_STR(name_once(path, id_a, 0x1000), NULL);
  write_fixture(debug, &(struct fixture){&symbol, 1, SHT_SYMTAB, id_a, NULL, 0});
  CHECK_EQ_STR(name_once(path, id_a, 0x1000), "hidden");
  CHECK_EQ_STR(name_once(path, id_a, 0x1100), "shown");
  write_fixture(debug, &(struct fixture){&symbol, 1, SHT_SYMTAB, id_b, NULL, 0});
  CHECK_EQ_STR(name_once(path, id_a, 0x1000), NULL);
}

static void test_debug_file_by_link(void) {
  const struct fixture_symbol symbol = {"linked", 0x1000, 0x10, STT_FUNC, STB_LOCAL};
  const struct fixture with_id = {&symbol, 1, SHT_SYMTAB, id_b, NULL, 0};
  const char *path = in_folder("with-link");
  write_fixture(path, &(struct fixture){NULL, 0, 0, id_b, "link.dbg", 0});
  char under_root[PATH_MAX];
  snprintf(under_root, sizeof under_root, "%s%s/link.dbg", in_folder("debug"), folder);
  const char *const places[] = {in_folder("link.dbg"), in_folder(".debug/link.dbg"), under_root};
  for (size_t i = 0; i < PM_COUNT_OF(places); i++) {
    CHECK_EQ_STR(name_once(path, id_b, 0x1000), NULL);
    write_fixture(places[i], &with_id);
    CHECK_EQ_STR(name_once(path, id_b, 0x1000), "linked");
    unlink(places[i]);
  }
  write_fixture(in_folder("link.dbg"), &with_id);
  write_fixture(path, &(struct fixture){NULL, 0, 0, id_a, "link.dbg", 0}); /* of another build */
  CHECK_EQ_STR(name_once(path, id_a, 0x1000), NULL);
  write_fixture(path, &(struct fixture){NULL, 0, 0, id_b, "./link.dbg", 0}); /* not a plain name */
  CHECK_EQ_STR(name_once(path, id_b, 0x1000), NULL);
}

static int quiet_system(const char *command) {
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Without a build-id the checksum that objcopy wrote has to be right. */
static void test_checksum_of_link(void) {
  const struct fixture_symbol symbol = {"summed", 0x1000, 0x10, STT_FUNC, STB_LOCAL};
  static const char sample[] = "123456789"; /* whose CRC-32 is 0xcbf43926 by the book */
  struct fixture_file file;
  fixture_make(&file, &(struct fixture){&symbol, 1, SHT_SYMTAB, NULL, NULL, 0});
  uint32_t sum = UINT32_MAX; /* bit by bit, unlike the code under test */
  for (int round = 0; round < 2; round++) {
    const uint8_t *bytes = round == 0 ? (const uint8_t *)sample : file.bytes;
    size_t size = round == 0 ? sizeof sample - 1 : file.size;
    sum = UINT32_MAX;
    for (size_t i = 0; i < size * 8; i++) {
      uint32_t bit = (sum ^ (uint32_t)(bytes[i / 8] >> i % 8)) & 1;
      sum = sum >> 1 ^ (bit != 0 ? 0xedb88320u : 0);
    }
    sum = ~sum;
    if (round == 0) CHECK_EQ_INT(sum, 0xcbf43926);
  }
  write_file(in_folder("sum.dbg"), file.bytes, file.size);
  const char *path = in_folder("sum");
  write_fixture(path, &(struct fixture){NULL, 0, 0, NULL, "sum.dbg", sum});
  CHECK_EQ_STR(name_once(path, NULL, 0x1000), "summed");
  write_fixture(path, &(struct fixture){NULL, 0, 0, NULL, "sum.dbg", sum ^ 1});
  CHECK_EQ_STR(name_once(path, NULL, 0x1000), NULL);
}

static int take_base(struct dl_phdr_info *program, size_t size, void *base) {
  (void)size;
  *(uintptr_t *)base = program->dlpi_addr;
  return 1; /* the program itself comes first */
}

static void check_own_names(const char *path) {
  uintptr_t base = 0;
  dl_iterate_phdr(take_base, &base);
  CHECK_EQ_STR(name_once(path, NULL, (uintptr_t)take_base + 4 - base), "take_base");
  CHECK_EQ_STR(name_once(path, NULL, (uintptr_t)cpp_function + 8 - base), "heat::burn(int)");
  CHECK_EQ_STR(name_once(path, NULL, (uintptr_t)rust_legacy_function - base), "heat::core::solve");
  CHECK_EQ_STR(name_once(path, NULL, (uintptr_t)rust_v0_function - base), "mycrate::foo::bar");
}

static void test_own_program(void) { check_own_names("/proc/self/exe"); }

/* The whole way as a distribution does it, where its tools are here. */
static void test_own_debug_file(void) {
  char command[3 * PATH_MAX], self[PATH_MAX] = "";
  if (quiet_system("command -v objcopy >/dev/null") != 0) return;
  CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command,
           "cd %s && objcopy --only-keep-debug '%s' own.dbg && "
           "objcopy --strip-all --add-gnu-debuglink=own.dbg '%s' own",
           folder, self, self);
  CHECK_EQ_INT(quiet_system(command), 0);
  check_own_names(in_folder("own"));
}

static void test_libc(void) {
  Dl_info info;
  void *libc = dlopen("libc.so.6", RTLD_LAZY);
  if (libc == NULL) return; /* not glibc */
  uintptr_t function = (uintptr_t)dlsym(libc, "qsort");
  CHECK(dladdr((void *)function, &info) != 0);
  uint64_t rva = function - (uintptr_t)info.dli_fbase;
  CHECK_EQ_STR(name_once(info.dli_fname, NULL, rva), "qsort");
  CHECK_EQ_STR(name_once(info.dli_fname, id_a, rva), NULL);
  struct pm_symbolizer *symbolizer = pm__symbolizer_new(); /* with the system's debug files */
  struct pm_symbol_file file = {info.dli_fname, NULL, NULL, 0};
  CHECK_EQ_STR(pm__symbolizer_name(symbolizer, &file, rva), "qsort");
  pm__symbolizer_free(symbolizer);
  dlclose(libc);
}

static void test_vdso(void) {
  const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
  if (image == NULL) return;
  struct pm_symbol_file file = {"[vdso]", image, NULL, 0};
  struct pm_symbolizer *symbolizer = new_symbolizer();
  bool found = false;
  for (uint64_t rva = 0; rva < 0x10000 && !found; rva += 4) {
    const char *name = pm__symbolizer_name(symbolizer, &file, rva);
    found = name != NULL && strstr(name, "clock_gettime") != NULL;
  }
  CHECK(found);
  file.image = (const void *)(uintptr_t)16; /* nothing there */
  CHECK(pm__symbolizer_name(symbolizer, &file, 0x1000) == NULL);
  pm__symbolizer_free(symbolizer);
}

/* Writes the bytes to `fd`'s file and asks for a few names; only a crash is wrong. */
static void feed(int fd, const char *path, const uint8_t *bytes, size_t size) {
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) abort();
  for (uint64_t rva = 0x1000; rva < 0x1040; rva += 0x20) name_once(path, NULL, rva);
}

static void test_damaged_files(void) {
  const struct fixture_symbol symbols[] = {{"one", 0x1000, 0x10, STT_FUNC, STB_GLOBAL},
                                           {"_Z1fv", 0x1020, 0, STT_FUNC, STB_LOCAL}};
  struct fixture_file file, damaged;
  fixture_make(&file, &(struct fixture){symbols, 2, SHT_SYMTAB, id_a, "absent.dbg", 0});
  int fd = memfd_create("damaged", MFD_CLOEXEC);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  for (size_t size = 0; size < file.size; size++) feed(fd, path, file.bytes, size);
  static const uint8_t flips[] = {0x01, 0x80, 0xff};
  for (size_t at = 0; at < file.size * PM_COUNT_OF(flips); at++) {
    damaged = file;
    damaged.bytes[at / PM_COUNT_OF(flips)] ^= flips[at % PM_COUNT_OF(flips)];
    feed(fd, path, damaged.bytes, damaged.size);
  }
  uint32_t seed = 1;
  for (int round = 0; round < 3000; round++) {
    damaged = file;
    for (int i = 0; i < 8; i++) {
      seed = seed * 1664525u + 1013904223u;
      damaged.bytes[(seed >> 8) % file.size] = (uint8_t)(seed >> 24);
    }
    feed(fd, path, damaged.bytes, damaged.size);
  }
  feed(fd, path, file.bytes, file.size);
  CHECK_EQ_STR(name_once(path, id_a, 0x1024), "f()");
  close(fd);
}

static void set_up(void) {
  char command[256];
  snprintf(folder, sizeof folder, "/tmp/pyrometer-symbol-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  snprintf(command, sizeof command, "cd %s && mkdir -p .debug debug/.build-id/ab debug%s", folder,
           folder);
  CHECK_EQ_INT(quiet_system(command), 0);
}

static void tear_down(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK_EQ_INT(quiet_system(command), 0);
}

int main(void) {
  set_up();
  test_choice_of_symbol();
  test_replaced_file();
  test_one_load();
  test_no_file();
  test_debug_file_by_build_id();
  test_debug_file_by_link();
  test_checksum_of_link();
  test_own_program();
  test_own_debug_file();
  test_libc();
  test_vdso();
  test_damaged_files();
  tear_down();
  return check_report();
}
