/* SPDX-License-Identifier: Apache-2.0 */
/* See environment.h. One table of keys; each names what it allows. */
#include "session/environment.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { BUDGET_DEFAULT = 300 }; /* 3 % */

/* A key's reader: false when the value is not one of those `allowed` names. */
typedef bool (*reader)(const json_t *value, struct pm_environment *out);

static bool read_whole(const json_t *value, json_int_t low, json_int_t high, uint32_t *out) {
  if (!json_is_integer(value)) return false;
  json_int_t number = json_integer_value(value);
  if (number < low || number > high) return false;
  *out = (uint32_t)number;
  return true;
}

static bool read_every(const json_t *value, struct pm_environment *out) {
  if (!json_is_number(value)) return false;
  double seconds = json_number_value(value);
  if (!(seconds >= 0.1 && seconds <= 86400.0)) return false;
  out->options.report_every_ms = (uint32_t)(seconds * 1000.0 + 0.5);
  return true;
}

static bool read_top(const json_t *value, struct pm_environment *out) {
  return read_whole(value, 1, 1000, &out->options.report_top);
}

static bool read_rate(const json_t *value, struct pm_environment *out) {
  return read_whole(value, 1, PM_RATE_MAX, &out->options.rate_hz);
}

static bool read_max_threads(const json_t *value, struct pm_environment *out) {
  return read_whole(value, 1, 65536, &out->options.max_threads);
}

static bool is_text(const json_t *value, const char *text) {
  return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool read_log(const json_t *value, struct pm_environment *out) {
  if (is_text(value, "stdout")) out->options.report_fd = 1;
  if (is_text(value, "logging")) out->options.flags |= PYROMETER_REPORT_LOGGING;
  return is_text(value, "stderr") || is_text(value, "stdout") || is_text(value, "logging");
}

static bool read_format(const json_t *value, struct pm_environment *out) {
  if (is_text(value, "json")) out->options.flags |= PYROMETER_REPORT_JSON;
  return is_text(value, "text") || is_text(value, "json");
}

static bool read_output(const json_t *value, struct pm_environment *out) {
  size_t size = json_string_length(value);
  if (size == 0 || size >= sizeof out->output) return false;
  memcpy(out->output, json_string_value(value), size + 1);
  out->options.report_output = out->output;
  return true;
}

static bool read_children(const json_t *value, struct pm_environment *out) {
  if (json_is_false(value)) out->flags &= ~(uint32_t)PYROMETER_ARM_CHILDREN;
  return json_is_boolean(value);
}

static bool read_signal(const json_t *value, struct pm_environment *out) {
  static const struct {
    const char *name;
    int number;
  } signals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"HUP", SIGHUP}, {"WINCH", SIGWINCH}};
  for (size_t i = 0; i < PM_COUNT_OF(signals); i++) {
    if (is_text(value, signals[i].name)) out->toggle = signals[i].number;
  }
  return out->toggle != 0;
}

static bool read_native(const json_t *value, struct pm_environment *out) {
  (void)out;
  return json_is_true(value);
}

static bool read_mode(const json_t *value, struct pm_environment *out) {
  (void)out;
  return is_text(value, "cpu");
}

static bool read_budget(const json_t *value, struct pm_environment *out) {
  out->options.budget = 0;
  if (is_text(value, "off")) return true;
  if (!json_is_number(value)) return false;
  double percent = json_number_value(value);
  if (!(percent >= 0.01 && percent <= 100.0)) return false;
  out->options.budget = (uint32_t)(percent * 100.0 + 0.5);
  return true;
}

static const struct {
  const char *key;
  reader read;
  const char *allowed;
} keys[] = {
    {"every", read_every, "seconds between reports, 0.1 to 86400"},
    {"top", read_top, "functions in a report, 1 to 1000"},
    {"rate", read_rate, "samples per second of CPU, 1 to 250"},
    {"max_threads", read_max_threads, "threads with Python frames, 1 to 65536"},
    {"log", read_log, "\"stderr\", \"stdout\" or \"logging\""},
    {"format", read_format, "\"text\" or \"json\""},
    {"output", read_output, "the path of a folder"},
    {"children", read_children, "true or false"},
    {"signal", read_signal, "\"USR1\", \"USR2\", \"HUP\" or \"WINCH\""},
    {"native", read_native, "true; the engine without signals is not there yet"},
    {"mode", read_mode, "\"cpu\"; \"wall\" is not there yet"},
    {"budget", read_budget, "percent of the CPU, 0.01 to 100, or \"off\""},
};

struct result {
  struct pm_environment *out;
  char *message;
  size_t size;
};

static void list_keys(char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < PM_COUNT_OF(keys) && used < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s%s", i == 0 ? "" : ", ", keys[i].key);
  }
}

static bool read_pair(const char *key, const json_t *value, const struct result *result) {
  char known[256];
  for (size_t i = 0; i < PM_COUNT_OF(keys); i++) {
    if (strcmp(key, keys[i].key) != 0) continue;
    if (keys[i].read(value, result->out)) return true;
    snprintf(result->message, result->size, "PYROMETER: \"%s\" must be: %s", key, keys[i].allowed);
    return false;
  }
  list_keys(known, sizeof known);
  snprintf(result->message, result->size, "PYROMETER: the key \"%.64s\" is not known; there are %s",
           key, known);
  return false;
}

static bool read_object(json_t *root, const struct result *result) {
  const char *key;
  json_t *value;
  json_object_foreach(root, key, value) {
    if (!read_pair(key, value, result)) return false;
  }
  return true;
}

bool pm__environment_parse(const char *text, struct pm_environment *out, char *message,
                           size_t message_size) {
  const struct result result = {.out = out, .message = message, .size = message_size};
  json_error_t error;
  *out = (struct pm_environment){.flags = PYROMETER_ARM_CHILDREN};
  out->options.size = sizeof out->options;
  out->options.report_every_ms = 60000;
  out->options.report_fd = 2;
  out->options.budget = BUDGET_DEFAULT;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) {
    snprintf(message, message_size, "PYROMETER is not JSON: line %d, column %d: %s", error.line,
             error.column, error.text);
    return false;
  }
  bool good = json_is_object(root);
  if (!good)
    snprintf(message, message_size, "PYROMETER must be a JSON object, like {\"every\": 60}");
  good = good && read_object(root, &result);
  json_decref(root);
  return good;
}
