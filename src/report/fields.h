/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row says as a flat JSON object, told apart by "profile": for the JSON format, and
 * for the attributes of Python's log records. New references; NULL when memory is short.
 */
#ifndef PM_REPORT_FIELDS_H
#define PM_REPORT_FIELDS_H

#include "report/report.h"

json_t *pm__fields_process(const struct pm_report *report, const struct pm_report_choice *choice);
json_t *pm__fields_thread(const struct pm_view *view, const struct pm_view_thread *thread);
json_t *pm__fields_function(const struct pm_view *view, const struct pm_view_frame *frame);
/* Rows that only the text format has: in JSON the process's row says it. */
json_t *pm__fields_active(const struct pm_report *report, const struct pm_report_choice *choice);
json_t *pm__fields_estimates(const struct pm_view *view, const struct pm_report_choice *choice);
json_t *pm__fields_rest(const struct pm_view *view, const struct pm_report_choice *choice);
json_t *pm__fields_remark(const struct pm_view *view);

#endif /* PM_REPORT_FIELDS_H */
