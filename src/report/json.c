/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for log pipelines: one JSON object each, told apart by "profile". */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"

enum { MARK_ROOM = 32 }; /* for pm__report_mark */

/* Takes the object over. One that is too long for a row is left out: half of it would be no JSON. */
static void put_row(json_t *object, pm_report_sink sink, void *context) {
  char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  size_t size = text == NULL ? 0 : strlen(text);
  if (size > 0 && size < PM_REPORT_ROW_MAX - MARK_ROOM) {
    text[size] = '\n'; /* in place of the NUL */
    sink(context, &(struct pm_report_row){.text = text, .size = size + 1, .fields = object});
  }
  free(text);
  json_decref(object);
}

void pm__report_json(const struct pm_report *report, pm_report_sink sink, void *context) {
  struct pm_report_choice choice;
  if (!pm__report_choose(report, &choice)) return;
  put_row(pm__fields_process(report, &choice), sink, context);
  for (uint32_t i = 0; !choice.idle && i < choice.threads; i++) {
    put_row(pm__fields_thread(report->view, &report->view->threads[i]), sink, context);
  }
  for (uint32_t i = 0; !choice.idle && i < choice.function_count; i++) {
    put_row(pm__fields_function(report->view, choice.functions[i]), sink, context);
  }
  free(choice.functions);
}
