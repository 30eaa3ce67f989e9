/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share beside the collector. */
#ifndef PM_SESSION_SESSION_H
#define PM_SESSION_SESSION_H

#include <jansson.h>

#include "profile/profile.h"

/* The diagnostics object of the design, section 6; NULL when memory is short. Caller holds the profile. */
json_t *pm__diagnostics_make(const struct pm_profile *profile);

#endif /* PM_SESSION_SESSION_H */
