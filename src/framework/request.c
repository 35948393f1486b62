#include "framework/request.h"

#include "base/quantity.h"
#include "base/record.h"
#include "framework/framework.h"
#include "framework/pod.h"

#include <math.h>
#include <string.h>

#define LABEL_IMAGES  "weir/images" /* job/job.h */
#define KEY_BYTES_MAX 63
#define HOUR_MS       ((int64_t)3600 * 1000)
#define DAY_MS        (24 * HOUR_MS)
#define MEMORY_MOST   ((int64_t)1 << 50) /* a pebibyte: no node has more */

struct common {
    const json_t *resources, *time_limit, *node_selector, *tolerations, *topology, *hold_on_failure,
        *save_within, *clusters, *overflow_after;
    const char *save_signal;
    int64_t priority;
    bool is_preemptible, is_fenced;
};

const struct weir_option weir_job_common_options[] = {
    WEIR_OPT_JSON(common, resources, "resources", JSON, 0, NULL, 0, 0,
                  "What each task needs: {accelerators, accelerator_model, accelerator_share, "
                  "accelerator_memory, mig_profile, cpus, memory}"),
    WEIR_OPT_JSON(common, priority, "priority", INT, 0, NULL, 0, WEIR_REQUEST_PRIORITY_MAX,
                  "Within its queue: the higher goes first; else 50, of a service 125"),
    WEIR_OPT_JSON(common, is_preemptible, "preemptible", BOOL, 0, "true", 0, 0,
                  "It may be stopped for others, and goes on later"),
    WEIR_OPT_JSON(common, time_limit, "time-limit", JSON, 0, NULL, 0, 0,
                  "Longest run, from its placement on: seconds, or a text as 90m, 12h, 2d"),
    WEIR_OPT_JSON(
        common, is_fenced, "fenced", BOOL, 0, "false", 0, 0,
        "It never runs twice at a time: its tasks stop themselves when their node has not "
        "reached the server for two thirds of the node time-out, and only after the whole of it "
        "are they started elsewhere"),
    WEIR_OPT_JSON(common, node_selector, "node-selector", MAP, 0, NULL, 0, 0,
                  "Labels that its nodes must have: {KEY: VALUE}"),
    WEIR_OPT_JSON(common, tolerations, "tolerations", JSON, 0, NULL, 0, 0,
                  "Taints of nodes that it tolerates: [{key, value}]; without a value any"),
    WEIR_OPT_JSON(common, topology, "topology", JSON, 0, NULL, 0, 0,
                  "Labels of nodes in which its tasks are alike: {required, preferred}"),
    WEIR_OPT_JSON(common, clusters, "clusters", TEXTS, 0, NULL, 0, 0,
                  "Clusters whose nodes it may have, in this order; local: nodes that joined by "
                  "themselves. Else as its queue says"),
    WEIR_OPT_JSON(common, overflow_after, "overflow-after", JSON, 0, NULL, 0, 0,
                  "It has waited for so long before nodes are asked of a cluster for it: seconds, "
                  "or a text as 10m; 0: at once. Else as its queue says, or the cluster"),
    WEIR_OPT_JSON(common, hold_on_failure, "hold-on-failure", JSON, 0, NULL, 0, 0,
                  "A task whose program fails keeps its place for so long, for a look by weir job "
                  "shell: seconds, or a text as 30m; at most 24 h"),
    {.name = "save-signal",
     .type = WEIR_OPTION_TEXT,
     .offset = offsetof(struct common, save_signal),
     .words = WEIR_WORDS("USR1", "USR2", "HUP", "INT", "TERM", "none"),
     .doc = "Signal by which its tasks are asked to save before the job is stopped for others; a "
            "training has USR1"},
    WEIR_OPT_JSON(common, save_within, "save-within", JSON, 0, NULL, 0, 0,
                  "How long they may save then: seconds, or a text as 2m; at most 1 h; 60 s if it "
                  "says nothing"),
};

struct resources {
    int64_t accelerators, cpu_millis;
    char *accelerator_model, *mig_profile;
    double accelerator_share;
    const json_t *accelerator_memory, *memory;
};

const struct weir_option weir_resource_options[] = {
    WEIR_OPT_JSON(resources, accelerators, "accelerators", INT, 0, "-1", -1,
                  WEIR_REQUEST_ACCELERATORS_MAX,
                  "Different devices of one node; 1 if something else is said of them"),
    WEIR_OPT_JSON(resources, accelerator_model, "accelerator-model", TEXT, 0, NULL, 0, 0,
                  "Model, as `weir get devices` names it; else any"),
    WEIR_OPT_JSON(resources, accelerator_share, "accelerator-share", F64, 0, "0", 0, 1,
                  "Part of each: 0.5"),
    WEIR_OPT_JSON(resources, accelerator_memory, "accelerator-memory", JSON, 0, NULL, 0, 0,
                  "Memory of each: bytes, or a text as 20GiB"),
    WEIR_OPT_JSON(resources, mig_profile, "mig-profile", TEXT, 0, NULL, 0, 0,
                  "Each is a MIG slice of this profile: 1g.10gb"),
    WEIR_OPT_JSON(resources, cpu_millis, "cpus", CPUS, 0, "-1", -1, WEIR_FRAMEWORK_CPUS_MAX,
                  "CPUs: 2, 0.5 or 500m; 0: shares what is there"),
    WEIR_OPT_JSON(resources, memory, "memory", JSON, 0, NULL, 0, 0,
                  "Memory, which is kept for it: bytes, or a text as 64GiB"),
};

_Static_assert(WEIR_ARRAY_LEN(weir_job_common_options) == WEIR_JOB_N_COMMON_OPTIONS &&
                   WEIR_ARRAY_LEN(weir_resource_options) == WEIR_JOB_N_RESOURCES,
               "the header says how many options there are");

/* ---- resources -------------------------------------------------------------------------------- */

static weir_status check_least(int64_t bytes, const char *where, struct weir_error *err)
{
    return bytes <= 0 || bytes >= WEIR_REQUEST_MEMORY_LEAST
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "%s: %lld bytes is too little for any program: give the unit, as "
                                "4GiB or 512M",
                                where, (long long)bytes);
}

/* 0 if it is not there. */
static weir_status read_bytes(const json_t *value, const char *where, int64_t *out,
                              struct weir_error *err)
{
    const char *text = json_string_value(value);
    int64_t bytes = json_integer_value(value);
    *out = 0;
    if (value == NULL || json_is_null(value)) {
        return WEIR_OK;
    }
    bool is_read = text != NULL ? weir_bytes_parse(text, &bytes) : json_is_integer(value);
    if (!is_read || bytes < 1 || bytes > MEMORY_MOST) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "%s: expected bytes, or a text as 64GiB or 512M", where);
    }
    *out = bytes;
    return check_least(bytes, where, err);
}

static weir_status take_share(const struct resources *resources, struct weir_accelerators *out,
                              struct weir_error *err)
{
    bool has_share = resources->accelerator_share > 0;
    if (has_share && out->memory_bytes > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.resources: accelerator_share, or accelerator_memory? Give "
                              "one of the two");
    }
    if (out->mig_profile != NULL && (has_share || out->memory_bytes > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.resources.mig_profile: a slice is given whole: leave out "
                              "accelerator_share and accelerator_memory");
    }
    out->milli = has_share               ? (int64_t)lround(resources->accelerator_share * 1000)
                 : out->memory_bytes > 0 ? 0
                                         : 1000;
    if (has_share && out->milli == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.resources.accelerator_share: expected 0.001 to 1");
    }
    return WEIR_OK;
}

static weir_status take_accelerators(const struct resources *resources,
                                     struct weir_accelerators *out, struct weir_error *err)
{
    out->model = resources->accelerator_model;
    out->mig_profile = resources->mig_profile;
    WEIR_TRY(read_bytes(resources->accelerator_memory, "$.spec.resources.accelerator_memory",
                        &out->memory_bytes, err));
    bool is_said = out->model != NULL || out->mig_profile != NULL || out->memory_bytes > 0 ||
                   resources->accelerator_share > 0;
    out->n = resources->accelerators >= 0 ? resources->accelerators : is_said;
    if (out->n == 0 && is_said) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.resources.accelerators: 0, and yet it is said which: leave "
                              "out one of the two");
    }
    if (out->n == 0) {
        return WEIR_OK;
    }
    return take_share(resources, out, err);
}

static weir_status check_once(const json_t *spec, const char *member, const char *resource,
                              bool is_given, struct weir_error *err)
{
    return is_given && json_object_get(spec, member) != NULL
               ? weir_error_set(err, WEIR_ERR_INVALID,
                                "$.spec.%s, or $.spec.resources.%s? Give one of the two", member,
                                resource)
               : WEIR_OK;
}

static weir_status read_resources(const json_t *spec, const json_t *object,
                                  struct weir_arena *arena, struct weir_job_request *out,
                                  struct weir_error *err)
{
    struct resources resources = {0};
    WEIR_TRY(check_least(json_integer_value(json_object_get(spec, "memory_max_bytes")),
                         "$.spec.memory_max_bytes", err));
    if (object == NULL) {
        out->cpu_millis = -1;
        return WEIR_OK;
    }
    WEIR_TRY(weir_options_read(weir_resource_options, WEIR_JOB_N_RESOURCES, object,
                               "$.spec.resources", NULL, arena, &resources, err));
    out->cpu_millis = resources.cpu_millis;
    WEIR_TRY(read_bytes(resources.memory, "$.spec.resources.memory", &out->memory_bytes, err));
    WEIR_TRY(check_once(spec, "cpus", "cpus", out->cpu_millis >= 0, err));
    WEIR_TRY(check_once(spec, "cpu_slots", "cpus", out->cpu_millis >= 0, err));
    WEIR_TRY(check_once(spec, "memory_max_bytes", "memory", out->memory_bytes > 0, err));
    return take_accelerators(&resources, &out->accelerators, err);
}

/* ---- which nodes ------------------------------------------------------------------------------ */

static bool is_mark(const char *text, bool is_key)
{
    size_t len = text != NULL ? strlen(text) : 0;
    return text != NULL && len <= KEY_BYTES_MAX && (len > 0 || !is_key);
}

static weir_status check_selector(const json_t *selector, struct weir_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)selector, key, value)
    {
        if (!is_mark(key, true) || !is_mark(json_string_value(value), false)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.node_selector.%.40s: expected a label's key and value, "
                                  "of at most %d bytes each",
                                  key, KEY_BYTES_MAX);
        }
    }
    return json_object_size(selector) <= WEIR_REQUEST_MARKS_MAX
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_LIMIT, "$.spec.node_selector: at most %d labels",
                                WEIR_REQUEST_MARKS_MAX);
}

static bool has_only(const json_t *object, const char *const *known)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0) {
            i++;
        }
        if (known[i] == NULL) {
            return false;
        }
    }
    return true;
}

static weir_status check_tolerations(const json_t *list, struct weir_error *err)
{
    static const char *const known[] = {"key", "value", NULL};
    size_t i;
    const json_t *item;
    if (list != NULL && (!json_is_array(list) || json_array_size(list) > WEIR_REQUEST_MARKS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.tolerations: expected a list of at most %d {key, value}",
                              WEIR_REQUEST_MARKS_MAX);
    }
    json_array_foreach(list, i, item)
    {
        const json_t *value = json_object_get(item, "value");
        if (!has_only(item, known) ||
            !is_mark(json_string_value(json_object_get(item, "key")), true) ||
            (value != NULL && !is_mark(json_string_value(value), false))) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "$.spec.tolerations[%zu]: expected {key, value}, the texts of a "
                                  "taint; without a value any of the key is tolerated",
                                  i);
        }
    }
    return WEIR_OK;
}

static weir_status check_topology(const json_t *topology, struct weir_error *err)
{
    static const char *const known[] = {"required", "preferred", NULL};
    const char *key;
    json_t *value;
    bool is_good = topology == NULL || (json_is_object(topology) && has_only(topology, known) &&
                                        json_object_size(topology) > 0);
    json_object_foreach((json_t *)topology, key, value)
    {
        is_good = is_good && is_mark(json_string_value(value), true);
    }
    return is_good ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_INVALID,
                                    "$.spec.topology: expected {required: KEY}, {preferred: KEY} "
                                    "or both, each the key of a label of nodes");
}

/* What runs in an image of a registry, or has volumes, goes into pods that are made for it; in another image, where images
 * are started: nodes say so by a label of their own. */
static void ask_for_images(const json_t *spec, json_t *placement)
{
    json_t *pod = weir_pod_wanted(spec);
    if (pod != NULL) {
        json_object_set_new(placement, "pod", pod);
    } else if (json_is_string(json_object_get(spec, "image"))) {
        json_t *selector = json_object_get(placement, "node_selector");
        if (selector == NULL) {
            selector = json_object();
            json_object_set_new(placement, "node_selector", selector);
        }
        json_object_set_new(selector, LABEL_IMAGES, json_string("crun"));
    }
}

/* ---- times ------------------------------------------------------------------------------------ */

static weir_status read_span(const json_t *value, const char *where, int64_t max_ms,
                             int64_t *out_ms, struct weir_error *err)
{
    const char *text = json_string_value(value);
    int64_t ms =
        json_integer_value(value) <= INT64_MAX / 1000 ? json_integer_value(value) * 1000 : 0;
    *out_ms = 0;
    if (value == NULL) {
        return WEIR_OK;
    }
    bool is_read = text != NULL ? weir_span_parse(text, &ms) : json_is_integer(value);
    if (!is_read || ms < 1000 || ms > max_ms) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s: expected seconds, or a text as 90m, 12h or 2d, of 1 s to %lld %s", where,
            (long long)(max_ms > DAY_MS ? max_ms / DAY_MS : max_ms / HOUR_MS),
            max_ms > DAY_MS ? "days" : "hours");
    }
    *out_ms = ms;
    return WEIR_OK;
}

/* ---- which clusters --------------------------------------------------------------------------- */

static weir_status check_clusters(const json_t *clusters, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *seen = json_object();
    size_t n = json_array_size(clusters), i;
    const json_t *item;
    if (clusters != NULL && (n == 0 || n > WEIR_REQUEST_CLUSTERS_MAX)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.spec.clusters: expected 1 to %d names",
                              WEIR_REQUEST_CLUSTERS_MAX);
    }
    json_array_foreach(clusters, i, item)
    {
        const char *name = json_string_value(item);
        if (!weir_name_is_valid(name) || json_object_get(seen, name) != NULL) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "$.spec.clusters[%zu]: \"%.63s\": expected the name of a cluster, "
                "or local, each once",
                i, name);
        }
        json_object_set_new(seen, name, json_true());
    }
    return WEIR_OK;
}

/* 0 is at once. */
static weir_status put_overflow(const json_t *value, json_t *placement, struct weir_error *err)
{
    const char *text = json_string_value(value);
    int64_t ms = 0;
    if (value == NULL) {
        return WEIR_OK;
    }
    bool is_zero = text != NULL ? weir_span_parse(text, &ms) && ms == 0
                                : json_is_integer(value) && json_integer_value(value) == 0;
    if (!is_zero) {
        WEIR_TRY(read_span(value, "$.spec.overflow_after", 366 * DAY_MS, &ms, err));
    }
    json_object_set_new(placement, "overflow_after_ms", json_integer(ms));
    return WEIR_OK;
}

static weir_status read_placement(const struct common *common, const json_t *spec,
                                  struct weir_arena *arena, struct weir_job_request *out,
                                  struct weir_error *err)
{
    WEIR_TRY(check_selector(common->node_selector, err));
    WEIR_TRY(check_tolerations(common->tolerations, err));
    WEIR_TRY(check_topology(common->topology, err));
    WEIR_TRY(check_clusters(common->clusters, err));

    const struct {
        const char *name;
        const json_t *value;
    } members[] = {{"node_selector", common->node_selector},
                   {"tolerations", common->tolerations},
                   {"topology", common->topology},
                   {"clusters", common->clusters}};

    WEIR_AUTO(weir_json_auto_free) json_t *placement = json_object();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(members); i++) {
        if (members[i].value != NULL) {
            json_object_set_new(placement, members[i].name, json_deep_copy(members[i].value));
        }
    }
    WEIR_TRY(put_overflow(common->overflow_after, placement, err));
    ask_for_images(spec, placement);
    out->placement = json_object_size(placement) > 0 ? weir_json_text(placement, arena) : NULL;
    return WEIR_OK;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static weir_status read_times(const struct common *common, const json_t *spec, bool is_service,
                              struct weir_job_request *out, struct weir_error *err)
{
    static const char hold[] = "$.spec.hold_on_failure";
    WEIR_TRY(
        read_span(common->time_limit, "$.spec.time_limit", 366 * DAY_MS, &out->time_limit_ms, err));
    WEIR_TRY(read_span(common->hold_on_failure, hold, DAY_MS, &out->hold_ms, err));
    if (is_service && out->time_limit_ms > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.time_limit: a service runs until it is cancelled");
    }
    if (is_service && out->hold_ms > 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "%s: a service is started again when it fails, and not kept", hold);
    }
    const char *image = json_string_value(json_object_get(spec, "image"));
    return out->hold_ms == 0 || image == NULL || weir_image_is_of_registry(image)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "%s: the place of a program in an image goes with it: leave one of "
                                "the two out",
                                hold);
}

/* Whether, by which signal, and for how long it is asked to save. */
static weir_status read_save(const struct common *common, bool is_service, const char *signal,
                             struct weir_job_request *out, struct weir_error *err)
{
    signal = common->save_signal != NULL ? common->save_signal : signal;
    bool is_asked = signal != NULL && strcmp(signal, "none") != 0;
    WEIR_TRY(read_span(common->save_within, "$.spec.save_within", WEIR_REQUEST_SAVE_MOST_MS,
                       &out->save_within_ms, err));
    if (is_service && (common->save_signal != NULL || common->save_within != NULL)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.save_%s: a service is stopped and started elsewhere, and has "
                              "its grace (stop_grace_ms)",
                              common->save_signal != NULL ? "signal" : "within");
    }
    if (!is_asked && out->save_within_ms > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.save_within: by which signal? Give save_signal too");
    }
    if (is_asked) {
        out->save_signal = signal;
        out->save_within_ms = out->save_within_ms > 0 ? out->save_within_ms : WEIR_REQUEST_SAVE_MS;
    }
    return WEIR_OK;
}

static json_t *member_of(const json_t *spec, const struct weir_option *option,
                         struct weir_arena *arena)
{
    return json_object_get(spec, weir_option_key(option, arena));
}

weir_status weir_job_request_read(const json_t *spec, bool is_service, const char *save_signal,
                                  struct weir_arena *arena, struct weir_job_request *out,
                                  struct weir_error *err)
{
    struct common common = {0};
    struct weir_job_request request = {0};
    WEIR_AUTO(weir_json_auto_free) json_t *own = json_object();
    for (size_t i = 0; i < WEIR_JOB_N_COMMON_OPTIONS; i++) {
        const struct weir_option *option = &weir_job_common_options[i];
        json_t *value = member_of(spec, option, arena);
        if (value != NULL && !json_is_null(value)) {
            json_object_set(own, weir_option_key(option, arena), value);
        }
    }
    WEIR_TRY(weir_options_read(weir_job_common_options, WEIR_JOB_N_COMMON_OPTIONS, own, "$.spec",
                               NULL, arena, &common, err));
    if (json_object_get(own, "priority") == NULL) {
        common.priority = is_service ? WEIR_REQUEST_PRIORITY_SERVICE : WEIR_REQUEST_PRIORITY_JOB;
    }
    request.priority = common.priority;
    request.is_preemptible = common.is_preemptible;
    request.is_fenced = common.is_fenced;
    WEIR_TRY(read_times(&common, spec, is_service, &request, err));
    WEIR_TRY(read_save(&common, is_service, save_signal, &request, err));
    WEIR_TRY(read_resources(spec, common.resources, arena, &request, err));
    WEIR_TRY(read_placement(&common, spec, arena, &request, err));
    const json_t *tasks = json_object_get(spec, "tasks");
    request.min_tasks = json_integer_value(json_object_get(tasks, "min"));
    *out = request;
    return WEIR_OK;
}

json_t *weir_job_request_strip(const json_t *spec)
{
    struct weir_arena arena;
    json_t *rest = json_copy((json_t *)spec);
    weir_arena_init(&arena, 0);
    for (size_t i = 0; i < WEIR_JOB_N_COMMON_OPTIONS; i++) {
        (void)json_object_del(rest, weir_option_key(&weir_job_common_options[i], &arena));
    }
    weir_arena_fini(&arena);
    return rest;
}
