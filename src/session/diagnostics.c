/* SPDX-License-Identifier: Apache-2.0 */
/* The diagnostics: one object, the same in every output. */
#include "python/oracle.h"
#include "python/python.h"
#include "sampler/sampler.h"
#include "session/collector.h"
#include "session/session.h"
#include "unwind/unwind.h"

static void put_count(json_t *object, const char *key, uint64_t value) {
  json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void put_text(json_t *object, const char *key, const char *value) {
  json_object_set_new(object, key, json_string(value));
}

static void put_seconds(json_t *object, const char *key, uint64_t ns) {
  json_object_set_new(object, key, json_real((double)ns / 1e9));
}

static const char *const event_names[PM_EVENT_KINDS] = {
    [PM_EVENT_START] = "PY_START", [PM_EVENT_RESUME] = "PY_RESUME",
    [PM_EVENT_THROW] = "PY_THROW", [PM_EVENT_RETURN] = "PY_RETURN",
    [PM_EVENT_YIELD] = "PY_YIELD", [PM_EVENT_UNWIND] = "PY_UNWIND",
};

static void put_python(json_t *root, const struct pm_profile_counts *counts) {
  static const char *const states[] = {[PM_PYTHON_ABSENT] = "absent",
                                       [PM_PYTHON_NATIVE_ONLY] = "native-only",
                                       [PM_PYTHON_ATTRIBUTED] = "attributed"};
  struct pm_python_facts facts = pm__python_facts();
  put_text(root, "version", facts.version);
  put_text(root, "state", states[facts.state]);
  put_text(root, "reason", facts.reason);
  json_object_set_new(root, "tool_id", json_integer(facts.tool_id));
  put_count(root, "unknown_codes", facts.codes_unregistered);
  put_count(root, "unknown_calls", facts.unknown_ids);
  uint64_t entered = 0;
  for (int i = PM_EVENT_START; i <= PM_EVENT_THROW; i++) entered += counts->events[i];
  uint64_t missed = facts.events_missed < entered ? facts.events_missed : entered;
  put_count(root, "cache_hits", entered - missed);
  put_count(root, "cache_misses", missed);
  put_count(root, "callback_failures", facts.callback_failures);
  json_t *events = json_object();
  json_t *distances = json_object();
  for (int i = 0; i < PM_EVENT_KINDS; i++) {
    put_count(events, event_names[i], counts->events[i]);
    json_object_set_new(distances, event_names[i], json_integer(facts.distance[i]));
  }
  json_object_set_new(root, "events", events);
  json_object_set_new(root, "frame_distances", distances);
}

static void put_categories(json_t *root) {
  static const char *const names[PM_CATEGORY_KINDS] = {
      [PM_CATEGORY_APPLICATION] = "application", [PM_CATEGORY_STDLIB] = "stdlib",
      [PM_CATEGORY_EXTERNAL] = "external",       [PM_CATEGORY_UNKNOWN] = "unknown",
      [PM_CATEGORY_OWN] = "pyrometer",
  };
  uint64_t counts[PM_CATEGORY_KINDS] = {0};
  for (uint32_t id = 1; id <= pm__code_count(); id++) {
    const struct pm_code *code = pm__code_info(id);
    if (code != NULL) counts[code->category]++;
  }
  json_t *categories = json_object();
  for (int i = 0; i < PM_CATEGORY_KINDS; i++) put_count(categories, names[i], counts[i]);
  json_object_set_new(root, "codes_by_category", categories);
}

static void put_signals(json_t *root, const struct pm_profile_counts *counts) {
  static const char *const causes[PM_LOST_KINDS] = {
#define PM_LOST_TEXT(name, text) [PM_LOST_##name] = (text),
      PM_LOST_MAP(PM_LOST_TEXT)
#undef PM_LOST_TEXT
  };
  put_count(root, "signals", counts->signals);
  put_count(root, "stored", counts->stored);
  json_t *lost = json_object();
  for (int i = 0; i < PM_LOST_KINDS; i++) put_count(lost, causes[i], counts->lost[i]);
  json_object_set_new(root, "lost", lost);
  put_seconds(root, "lost_s", counts->lost_ns);
  put_count(root, "snapshots", counts->stored);
  put_count(root, "snapshot_failures", counts->snapshot_failures);
}

static void put_stacks(json_t *root, const struct pm_profile *profile,
                       const struct pm_profile_counts *counts) {
  put_count(root, "samples_attributed", profile->attributed);
  put_count(root, "samples_estimated", profile->estimated);
  json_object_set_new(root, "events_share", json_real(pm__profile_events_share(profile)));
  put_count(root, "event_bursts", profile->events.bursts);
  put_count(root, "samples_native_only", profile->native_only);
  put_count(root, "samples_in_subinterpreters", profile->unfollowed);
  put_count(root, "samples_complete", profile->complete);
  put_count(root, "samples_guessed", profile->guessed);
  put_count(root, "samples_dropped", profile->dropped);
  put_count(root, "nodes_pruned", profile->tree.pruned);
  put_count(root, "boundary_misses", profile->boundary_misses);
  put_count(root, "truncated_stacks", profile->truncated_stacks);
  put_count(root, "unknown_ids", profile->unknown_ids);
  put_count(root, "thread_mismatches", 0); /* a thread's handler reads no other thread's stack */
  put_count(root, "depth_max", counts->depth_max);
  put_count(root, "depth_overflows", counts->overflows);
  put_count(root, "resyncs", counts->resyncs);
}

static void put_threads(json_t *root, const struct pm_profile *profile) {
  struct pm_sampler_facts facts = pm__sampler_facts();
  put_count(root, "threads_registered", profile->thread_count - 1);
  put_count(root, "threads_native_only", facts.shadows_refused);
  put_count(root, "threads_beyond_limit", facts.threads_beyond_limit);
  put_text(root, "timer", facts.process_timer ? "process" : "per thread");
  put_count(root, "timers_refused", facts.timers_refused);
  put_count(root, "signal_number", (uint64_t)facts.signal);
  if (facts.signal_lost != 0) put_count(root, "signal_lost", (uint64_t)facts.signal_lost);
  json_t *unsampled = json_array();
  for (uint32_t i = 0; i < profile->thread_count; i++) {
    const struct pm_profile_thread *thread = &profile->threads[i];
    if (*pm__profile_reason(thread) == 0) continue;
    json_t *row =
        json_pack("{s:s?, s:i, s:f, s:s}", "name", thread->name, "tid", thread->tid, "cpu_s",
                  (double)thread->cpu_ns / 1e9, "reason", pm__profile_reason(thread));
    if (row != NULL) json_array_append_new(unsampled, row);
  }
  json_object_set_new(root, "threads_unsampled", unsampled);
}

static void put_unwinder(json_t *root) {
  struct pm_unwind_statistics facts = pm__unwind_statistics();
  json_t *unwind = json_object();
  put_count(unwind, "objects", facts.objects);
  put_count(unwind, "rows", facts.rows);
  put_count(unwind, "bytes", facts.bytes);
  put_count(unwind, "rejected", facts.rejected);
  put_seconds(unwind, "build_s", facts.build_ns);
  json_object_set_new(root, "unwind_tables", unwind);
}

static void put_overhead(json_t *root, const struct pm_profile *profile,
                         const struct pm_profile_counts *counts) {
  json_t *overhead = json_object();
  json_object_set_new(overhead, "percent", json_real(pm__profile_overhead(profile)));
  put_seconds(overhead, "handler_s", counts->handler_ns);
  put_seconds(overhead, "callbacks_s", profile->own_ns);
  put_seconds(overhead, "events_s", pm__profile_events_ns(profile));
  put_seconds(overhead, "switches_s", profile->events.switch_ns);
  put_seconds(overhead, "collector_s", profile->collector_ns);
  json_object_set_new(root, "overhead", overhead);
}

/* The oracle build only. */
static void put_oracle(json_t *root) {
  struct pm_oracle_facts facts;
  if (!pm__oracle_facts(&facts)) return;
  json_t *oracle = json_object();
  put_count(oracle, "events", facts.events);
  put_count(oracle, "compared", facts.compared);
  put_count(oracle, "different", facts.different);
  put_count(oracle, "frameless", facts.frameless);
  json_t *healed = json_object();
  for (int i = 0; i < PM_EVENT_KINDS; i++) put_count(healed, event_names[i], facts.healed[i]);
  json_object_set_new(oracle, "healed", healed);
  json_t *examples = json_array();
  for (int i = 0; i < PM_ORACLE_EXAMPLES && facts.examples[i] != NULL; i++) {
    json_array_append_new(examples, json_string(facts.examples[i]));
  }
  json_object_set_new(oracle, "examples", examples);
  json_object_set_new(root, "oracle", oracle);
}

json_t *pm__diagnostics_make(const struct pm_profile *profile) {
  json_t *root = json_object();
  if (root == NULL) return NULL;
  struct pm_profile_counts counts = pm__collector_counts();
  put_text(root, "backend", "CPU-time timers, signal handler, sys.monitoring");
  put_python(root, &counts);
  put_categories(root);
  put_signals(root, &counts);
  put_stacks(root, profile, &counts);
  put_threads(root, profile);
  put_unwinder(root);
  put_overhead(root, profile, &counts);
  put_oracle(root);
  return root;
}
