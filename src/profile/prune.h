/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree that has become too large gives up its lightest parts, not its totals:
 * each subtree that goes is folded into one node `(pruned)` below its parent. So a
 * node is whole, or in its parent's `(pruned)`; sums by thread and window stay exact.
 */
#ifndef PM_PROFILE_PRUNE_H
#define PM_PROFILE_PRUNE_H

#include "profile/tree.h"

/*
 * Folds until three quarters of the limits are left. Those that stay used most CPU,
 * their callees included; of equal ones the oldest. Roots stay, and what stands directly
 * below them for the accounts ([pyrometer], (unsampled)): they may be more than that.
 * Nodes get new indices, but keep their order. Takes time linear in the nodes, about once
 * in a quarter of the limit. False when memory is short: then nothing has changed.
 */
bool pm__prune_tree(struct pm_tree *tree);

#endif /* PM_PROFILE_PRUNE_H */
