/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol: from an address in an ELF file to a function's name.
 * Called by: profile, when a view is made, and the journal's recovery. Never
 * from a handler. Locks: none; a symbolizer belongs to one thread at a time.
 */
#ifndef PM_SYMBOL_SYMBOL_H
#define PM_SYMBOL_SYMBOL_H

#include "base/base.h"

struct pm_symbolizer;

struct pm_symbolizer *pm__symbolizer_new(void); /* NULL: out of memory */
void pm__symbolizer_free(struct pm_symbolizer *symbolizer);

/* Where separate debug files lie, instead of /usr/lib/debug; before the first look-up. */
bool pm__symbolizer_set_debug_root(struct pm_symbolizer *symbolizer, const char *root);

/* The file to look in: its path, and the build-id it must have (size 0: any). */
struct pm_symbol_file {
  const char *path;        /* "[vdso]" is read from memory at `image` */
  const void *image;       /* only for "[vdso]" */
  const uint8_t *build_id;
  size_t build_id_size;
};

/*
 * The demangled name of the function that covers `rva` (an address as the file's
 * symbol table counts it), valid until the symbolizer is freed; NULL when no
 * symbol is known. Sources, best first: .symtab of the file, a separate debug
 * file (by build-id under /usr/lib/debug/.build-id, by .gnu_debuglink),
 * .dynsym. Compiler suffixes (.cold, .part.0, .isra.0, .constprop.0, .lto_priv.0,
 * .llvm.*, @VERSION) are cut, so a function's parts share one name. A file whose
 * build-id differs from the one given (replaced on disk) is not used.
 * C++ and Rust (legacy and v0) names are demangled, except those that are longer
 * than 4 kB or need more stack than the calling thread has. A call may use 192 kB of it.
 */
const char *pm__symbolizer_name(struct pm_symbolizer *symbolizer, const struct pm_symbol_file *file,
                                uint64_t rva);

#endif /* PM_SYMBOL_SYMBOL_H */
