/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every object seen in the session, loaded or gone. Changed under unwind.c's lock, by one
 * builder at a time; so the builder may read without it.
 */
#ifndef PM_UNWIND_REGISTRY_H
#define PM_UNWIND_REGISTRY_H

#include "unwind/builder.h"
#include "unwind/image.h"
#include "unwind/unwind.h"

/* One object. The record stays until the end; its table goes when the object does. */
struct pm_loaded {
  struct pm_object object;
  struct pm_image image;
  uint64_t fingerprint;
  struct pm_compiled *compiled; /* one reference; NULL: not built, no CFI, or gone */
  struct pm_loaded *next;
  bool alive;   /* loaded at the last scan */
  bool seen;    /* in the scan under way */
  bool pending; /* alive, and its table is still to be built */
};

struct pm_registry {
  struct pm_loaded *first, **end;
  uint32_t count;
  uint32_t alive;
};

void pm__registry_begin(struct pm_registry *registry);
void pm__registry_free(struct pm_registry *registry);
/* Drops the records of objects that are loaded no more. No snapshot may name them. */
void pm__registry_forget_gone(struct pm_registry *registry);

/* What a scan changed. */
struct pm_registry_change {
  bool came; /* an object that was not alive is now */
  bool gone; /* an object's addresses are free, or belong to another one by now */
};

/*
 * Brings the records in line with a scan. `unloaded`: something was unloaded
 * since the last scan, so an object at the same place may be another one.
 * 0 or -1 (out of memory; what was taken up holds).
 */
int pm__registry_update(struct pm_registry *registry, const struct pm_image_list *list,
                        bool unloaded, struct pm_registry_change *change);

/*
 * Compiles the table of a pending object: the slow part, done without the lock. NULL in
 * `compiled`: it has no CFI. False when it must be tried again: it was unloaded meanwhile,
 * or memory ran out.
 */
bool pm__registry_compile(const struct pm_loaded *loaded, struct pm_compiled **compiled);
/* Makes the table the object's, which is pending no more. */
void pm__registry_settle(struct pm_loaded *loaded, struct pm_compiled *compiled);

/* References of compiled tables; the last one frees. */
struct pm_compiled *pm__compiled_hold(struct pm_compiled *compiled);
void pm__compiled_release(struct pm_compiled *compiled);

#endif /* PM_UNWIND_REGISTRY_H */
