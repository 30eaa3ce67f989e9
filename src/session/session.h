/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share beside the collector. */
#ifndef PM_SESSION_SESSION_H
#define PM_SESSION_SESSION_H

#include <jansson.h>
#include <pyrometer.h>

#include "profile/profile.h"

/*
 * pyrometer_start; with a delay nothing is done in the caller's time that can be done by the
 * collector after it. Python is attached then when it lets us in (arrival.h).
 */
int pm__session_start(const struct pyrometer_options *options, uint32_t delay_ms);

/* Before the program's first line; as pyrometer_arm. */
void pm__arm_preloaded(void);

/* In a forked child at its first Python event: reports there too when armed so. */
void pm__arm_in_child(void);

/* The diagnostics object of the design, section 6; NULL when memory is short. Caller holds the profile. */
json_t *pm__diagnostics_make(const struct pm_profile *profile);

#endif /* PM_SESSION_SESSION_H */
