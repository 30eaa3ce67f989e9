/* SPDX-License-Identifier: Apache-2.0 */
/* A frame as the live call tree keys it: small, comparable, without a name yet. */
#ifndef PM_PROFILE_FRAME_H
#define PM_PROFILE_FRAME_H

#include "base/base.h"

/* Pseudo frames and the text that a view shows for them. */
#define PM_PSEUDO_MAP(X)           \
  X(OWN, "[pyrometer]")            \
  X(TRUNCATED, "[truncated %u]")   \
  X(UNSAMPLED, "(unsampled)")      \
  X(NO_STACK, "(no native stack)") \
  X(PRUNED, "(pruned)")

enum pm_pseudo {
#define PM_PSEUDO_ENUM(name, text) PM_PSEUDO_##name,
  PM_PSEUDO_MAP(PM_PSEUDO_ENUM)
#undef PM_PSEUDO_ENUM
      PM_PSEUDO_KINDS
};

enum pm_key_kind { PM_KEY_PYTHON, PM_KEY_NATIVE, PM_KEY_PSEUDO };

/*
 * PYTHON: id is the code id. NATIVE: id is the object's id (0: no object), value
 * the RVA of the function's start, or of the address where no FDE covers it.
 * PSEUDO: id is a pm_pseudo.
 */
struct pm_frame_key {
  uint32_t kind;
  uint32_t id;
  uint64_t value;
};

static inline bool pm__frame_key_equal(struct pm_frame_key a, struct pm_frame_key b) {
  return a.kind == b.kind && a.id == b.id && a.value == b.value;
}

static inline struct pm_frame_key pm__frame_key_pseudo(enum pm_pseudo pseudo) {
  return (struct pm_frame_key){.kind = PM_KEY_PSEUDO, .id = (uint32_t)pseudo, .value = 0};
}

static inline bool pm__frame_key_is_pseudo(struct pm_frame_key key, enum pm_pseudo pseudo) {
  return key.kind == PM_KEY_PSEUDO && key.id == (uint32_t)pseudo;
}

#endif /* PM_PROFILE_FRAME_H */
