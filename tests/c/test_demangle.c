/* SPDX-License-Identifier: Apache-2.0 */
/* Readable names: suffixes cut, C++ and Rust demangled, hostile names survived. */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"
#include "symbol/demangle.h"

#define RUST_LEGACY "_ZN4heat4core5solve17h0123456789abcdefE"

static void check_name(const char *symbol, const char *want) {
  char *name = pm__demangle_name(symbol);
  CHECK_EQ_STR(name, want);
  free(name);
}

static void test_readable_names(void) {
  check_name("plain", "plain");
  check_name("", "");
  check_name("_start", "_start");
  check_name("memcpy@@GLIBC_2.14", "memcpy");
  check_name("@odd", "@odd");
  check_name("list_sort.cold", "list_sort");
  check_name("list_sort.part.0.constprop.1.cold", "list_sort");
  check_name("dict.isra.0", "dict");
  check_name("dict.lto_priv.12.lto_priv.3", "dict");
  check_name("dict.llvm.1234567", "dict");
  check_name("kernel.avx2", "kernel.avx2");
  check_name("colder.coldest", "colder.coldest");
  check_name("_ZN4heat4burnEi.part.0", "heat::burn(int)");
  check_name("_ZNSt6vectorIiSaIiEE9push_backERKi",
             "std::vector<int, std::allocator<int> >::push_back(int const&)");
  check_name("_Znot_a_name", "_Znot_a_name");
  check_name(RUST_LEGACY ".llvm.99", "heat::core::solve");
  check_name("_ZN47_$LT$a..cold..B$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
             "<a::cold::B as core::fmt::Debug>::fmt");
  check_name("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
}

/* Deep names are fine; those too long, or standing for gigabytes, are kept as they are. */
static void test_hostile_names(void) {
  char name[8192] = "_Z1f";
  memset(name + 4, 'P', 900);
  name[904] = 'i';
  char *deep = pm__demangle_name(name);
  CHECK(deep != NULL && strncmp(deep, "f(int*", 6) == 0);
  free(deep);
  memset(name + 4, 'P', 8000);
  check_name(name, name);
  char *end = name + sprintf(name, "_Z1f1aIiiE"); /* each parameter twice the one before it */
  for (int i = 0; i < 35; i += 2) {
    char digit = (char)(i < 10 ? '0' + i : 'A' + i - 10);
    end += sprintf(end, "1aIS%c_S%c_E", digit, digit);
  }
  check_name(name, name);
}

static void *demangle_on_small_stack(void *name) {
  check_name(name, name);
  return NULL;
}

static void test_small_stack(void) {
  char name[1024] = "_Z1f";
  pthread_attr_t attributes;
  pthread_t thread;
  memset(name + 4, 'P', 1000);
  name[1004] = 'i';
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  CHECK(pthread_create(&thread, &attributes, demangle_on_small_stack, name) == 0);
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
}

int main(void) {
  test_readable_names();
  test_hostile_names();
  test_small_stack();
  return check_report();
}
