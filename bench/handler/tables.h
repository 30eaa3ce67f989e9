/* SPDX-License-Identifier: Apache-2.0 */
/* What the tables cost: time to build, rows, bytes a row, for each loaded object. */
#ifndef PM_BENCH_TABLES_H
#define PM_BENCH_TABLES_H

void tables_report(void);

#endif /* PM_BENCH_TABLES_H */
