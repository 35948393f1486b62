#include "sim/replay.h"

#include "base/log.h"
#include "sim/cycle.h"
#include "sim/measure.h"
#include "sim/policy.h"

#include <string.h>

// clang-format off
#define OPT(member, name, type, fallback, low, high, arg, doc)                                     \
    WEIR_OPT(weir_sim_options, member, name, 0, type, fallback, low, high, arg, doc)

static const struct weir_option options_table[] = {
    OPT(profile,            "profile",          TEXT, "default", 0, 0, "NAME", "default or kai; fifo, fifo-skip, sjf, las or static count devices only"),
    OPT(quota,              "quota",            TEXT, "demand",  0, 0, "RULE", "Quotas of queues that the cluster does not list: none, equal, or by demand"),
    OPT(is_one_queue,       "one-queue",        BOOL, NULL,      0, 0, NULL, "All jobs in one queue, whatever the trace says"),
    OPT(cycle_s,            "cycle",            F64,  "30",      0, 86400, "S", "Plan at most once in so many seconds"),
    OPT(recheck_s,          "recheck",          F64,  "600",     0, 1e9, "S", "Plan at least so often while jobs wait, for what time alone decides; 0: only at events"),
    OPT(preempt_cost_s,     "preempt-cost",     F64,  "60",      0, 1e9, "S", "What a restart after an eviction costs"),
    OPT(checkpoint_every_s, "checkpoint-every", F64,  "1800",    0, 1e9, "S", "How often jobs save their work; 0: never"),
    OPT(resize_cost_s,      "resize-cost",      F64,  "30",      0, 1e9, "S", "What a change of size costs an elastic job"),
    OPT(min_run_s,          "min-run",          F64,  "0",       0, 1e9, "S", "No eviction before a job has run so long; of queues that the cluster does not list"),
    OPT(las_threshold_s,    "las-threshold",    F64,  "3200",    0, 1e12, "S", "Device seconds below which las puts a job first"),
    OPT(until_s,            "until",            F64,  "0",       0, 1e9, "S", "End the replay so many seconds after the first submission; 0: play it all"),
    OPT(is_duration_known,  "known-durations",  BOOL, NULL,      0, 0, NULL, "Tell the scheduler how long jobs run"),
};

// clang-format on

const struct weir_option *weir_sim_options(size_t *out_n)
{
    *out_n = WEIR_ARRAY_LEN(options_table);
    return options_table;
}

void weir_sim_options_init(struct weir_sim_options *options)
{
    *options = (struct weir_sim_options){.profile = "default",
                                         .quota = "demand",
                                         .cycle_s = 30,
                                         .recheck_s = 600,
                                         .preempt_cost_s = 60,
                                         .checkpoint_every_s = 1800,
                                         .resize_cost_s = 30,
                                         .las_threshold_s = 3200};
}

bool weir_sim_is_policy(const char *profile)
{
    return policy_is_known(profile);
}

weir_status weir_sim_profile_named(const char *name, struct weir_sched_profile *out,
                                   struct weir_error *err)
{
    weir_status status =
        weir_sched_profile_named(policy_is_known(name) ? "default" : name, out, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        struct weir_names names = {0};
        policy_list(&names);
        return weir_error_set(err, status,
                              "profile \"%.60s\": there are default, kai, and to compare with %s",
                              name, names.text);
    }
    return status;
}

static bool is_in_table(const struct weir_option *table, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/** The word that an option had in the version before. */
static const char *new_word(const char *name)
{
    static const char *const words[][2] = {{"keep-places", "nominations"},
                                           {"least-lost-work", "least-eviction-cost"},
                                           {"quota-windows", "timed-quotas"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(words); i++) {
        if (strcmp(name, words[i][0]) == 0) {
            weir_log(WEIR_LOG_WARN, "option_renamed", WEIR_KV_STR("option", name),
                     WEIR_KV_STR("now", words[i][1]));
            return words[i][1];
        }
    }
    return name;
}

static weir_status set_option(char *assignment, struct weir_arena *arena,
                              struct weir_sim_options *options, struct weir_sched_profile *sched,
                              struct weir_error *err)
{
    size_t n_sched;
    const struct weir_option *sched_table = weir_sched_profile_options(&n_sched);
    char *equals = strchr(assignment, '=');
    if (equals == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "option \"%.60s\": expected NAME=VALUE",
                              assignment);
    }
    *equals = '\0';
    const char *name = new_word(assignment);
    WEIR_AUTO(weir_json_auto_free) json_t *object = json_pack("{s:s}", name, equals + 1);
    if (object == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "option %.60s: not UTF-8", name);
    }
    if (is_in_table(sched_table, n_sched, name)) {
        return weir_options_from_json(sched_table, n_sched, object, arena, sched, err);
    }
    if (options != NULL && is_in_table(options_table, WEIR_ARRAY_LEN(options_table), name)) {
        return weir_options_from_json(options_table, WEIR_ARRAY_LEN(options_table), object, arena,
                                      options, err);
    }
    return weir_error_set(err, WEIR_ERR_INVALID,
                          "there is no option \"%.60s\"; docs/reference/simulator.md lists them",
                          name);
}

weir_status weir_sim_options_set(const char *lines, struct weir_arena *arena,
                                 struct weir_sim_options *options, struct weir_sched_profile *sched,
                                 struct weir_error *err)
{
    for (const char *at = lines; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, "\n");
        WEIR_TRY(set_option(weir_arena_memdup(arena, at, len), arena, options, sched, err));
        at += len + (at[len] == '\n');
    }
    return weir_sched_profile_check(sched, err);
}

static weir_status check_options(const struct weir_sim_options *options, struct weir_error *err)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(options_table); i++) {
        const struct weir_option *option = &options_table[i];
        if (option->type == WEIR_OPTION_F64) {
            double value = *(const double *)((const char *)options + option->offset);
            if (!(value >= option->min && value <= option->max)) {
                return weir_error_set(err, WEIR_ERR_INVALID, "%s: expected %g to %g", option->name,
                                      option->min, option->max);
            }
        }
    }
    if (strcmp(options->quota, "none") != 0 && strcmp(options->quota, "equal") != 0 &&
        strcmp(options->quota, "demand") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "quota: expected none, equal or demand");
    }
    return WEIR_OK;
}

/* ---- queues ---------------------------------------------------------------------------------- */

struct queues {
    struct weir_sched_queue *list;
    int32_t n, n_listed; /**< Listed: those of the cluster, first. */
    const char **texts;  /**< The trace's text of each; NULL: not looked up yet. */
};

static int32_t find_queue(const struct queues *queues, const char *name)
{
    for (int32_t q = queues->n - 1; q >= 0; q--) {
        if (queues->texts[q] == name || strcmp(queues->list[q].name, name) == 0) {
            return q;
        }
    }
    return WEIR_SCHED_NONE;
}

static bool has_children(const struct queues *queues, int32_t queue)
{
    for (int32_t q = queue + 1; q < queues->n; q++) {
        if (queues->list[q].parent == queue) {
            return true;
        }
    }
    return false;
}

static void add_queue(struct queues *queues, const struct timeline *timeline, const char *name)
{
    int64_t min_run_ms = (int64_t)(timeline->options->min_run_s * 1000);
    queues->list[queues->n++] = (struct weir_sched_queue){
        .name = name,
        .parent = WEIR_SCHED_NONE,
        .priority = 100,
        .shares = {{0, 1000, WEIR_SCHED_UNLIMITED},
                   {WEIR_SCHED_UNLIMITED, 1000, WEIR_SCHED_UNLIMITED},
                   {WEIR_SCHED_UNLIMITED, 1000, WEIR_SCHED_UNLIMITED}},
        .preempt_min_run_ms = min_run_ms,
        .reclaim_min_run_ms = min_run_ms,
    };
}

static weir_status assign_queues(struct queues *queues, struct timeline *timeline,
                                 const struct weir_sim_cluster *cluster, struct weir_error *err)
{
    const struct weir_sim_trace *trace = timeline->trace;
    const char *last_name = NULL;
    int32_t last = WEIR_SCHED_NONE, cap = cluster->n_queues + 4096;
    queues->list = WEIR_ARENA_ARRAY(timeline->arena, (size_t)cap, struct weir_sched_queue);
    queues->texts = WEIR_ARENA_ARRAY(timeline->arena, (size_t)cap, const char *);
    if (cluster->n_queues > 0) {
        memcpy(queues->list, cluster->queues, (size_t)cluster->n_queues * sizeof *queues->list);
    }
    queues->n = queues->n_listed = cluster->n_queues;
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        const char *name = timeline->options->is_one_queue ? "all" : trace->jobs[j].queue;
        if (name != last_name) {
            last = find_queue(queues, name);
            last_name = name;
        }
        if (last == WEIR_SCHED_NONE) {
            if (queues->n == cap) {
                return weir_error_set(err, WEIR_ERR_LIMIT, "more than 4096 queues in the trace");
            }
            add_queue(queues, timeline, name);
            last = queues->n - 1;
        }
        queues->texts[last] = name;
        timeline->jobs[j].queue = timeline->jobs[j].result.queue = last;
    }
    for (int32_t j = 0; j < trace->n_jobs; j++) {
        if (has_children(queues, timeline->jobs[j].queue)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "job \"%.80s\" is in queue \"%.80s\", which has queues below it: "
                                  "jobs belong into the lowest ones",
                                  trace->jobs[j].name, queues->list[timeline->jobs[j].queue].name);
        }
    }
    return WEIR_OK;
}

/** Whole devices to the queues that the cluster does not list, so that they use it up together. */
static void give_quotas(struct queues *queues, const struct timeline *timeline,
                        int64_t capacity_milli)
{
    const char *rule = timeline->options->quota;
    int32_t n = queues->n - queues->n_listed;
    double *demand = WEIR_ARENA_ARRAY(timeline->arena, (size_t)queues->n, double), total = 0;
    if (strcmp(rule, "none") == 0 || queues->n_listed > 0 || n == 0) {
        return;
    }
    for (int32_t j = 0; j < timeline->trace->n_jobs; j++) {
        double milli_ms =
            (double)timeline->jobs[j].milli * (double)timeline->trace->jobs[j].duration_ms;
        demand[timeline->jobs[j].queue] += milli_ms;
        total += milli_ms;
    }
    for (int32_t q = 0; q < queues->n; q++) {
        double part = strcmp(rule, "equal") == 0 ? 1.0 / n : total > 0 ? demand[q] / total : 0;
        int64_t devices = (int64_t)(part * (double)capacity_milli / WEIR_SCHED_DEVICE);
        queues->list[q].shares[WEIR_SCHED_ACCELERATOR].quota = devices * WEIR_SCHED_DEVICE;
    }
}

static void metrics_queues(const struct queues *queues, struct metrics *metrics)
{
    for (int32_t q = 0; q < queues->n; q++) {
        const struct weir_sched_share *share = &queues->list[q].shares[WEIR_SCHED_ACCELERATOR];
        metrics->queues[q].quota_milli = share->quota;
        metrics->queues[q].weight = WEIR_MAX(share->weight, 0);
    }
    metrics_start(metrics);
}

/* ---- the run --------------------------------------------------------------------------------- */

static weir_status run_cycles(struct timeline *timeline, const struct weir_sim_cluster *cluster,
                              const struct queues *queues, struct weir_sim_report *report,
                              struct weir_error *err)
{
    struct weir_sched_profile profile;
    struct cycle *cycle = NULL;
    if (timeline->options->sched != NULL) {
        profile = *timeline->options->sched;
    } else {
        WEIR_TRY(weir_sched_profile_named(timeline->options->profile, &profile, err));
    }
    weir_status status =
        cycle_create(timeline, cluster, queues->list, queues->n, &profile, &cycle, err);
    if (status == WEIR_OK) {
        struct timeline_driver driver = cycle_driver(cycle);
        status = timeline_run(timeline, &driver, err);
    }
    if (status == WEIR_OK) {
        cycle_report(cycle, report);
    }
    cycle_destroy(cycle);
    return status;
}

static weir_status run_policy(struct timeline *timeline, struct weir_error *err)
{
    struct policy *policy = policy_create(timeline->options->profile, timeline);
    struct timeline_driver driver = policy_driver(policy);
    weir_status status = timeline_run(timeline, &driver, err);
    policy_destroy(policy);
    return status;
}

static weir_status run(const struct weir_sim_trace *trace, const struct weir_sim_cluster *cluster,
                       const struct weir_sim_options *options, struct weir_arena *arena,
                       struct weir_sim_report *report, struct weir_error *err)
{
    struct timeline timeline;
    struct queues queues = {0};
    int64_t capacity_milli = 0;
    int32_t node_devices = 0;
    for (int32_t n = 0; n < cluster->n_nodes; n++) {
        capacity_milli += (int64_t)cluster->nodes[n].n_devices * WEIR_SCHED_DEVICE;
        node_devices = WEIR_MAX(node_devices, cluster->nodes[n].n_devices);
    }
    WEIR_TRY(timeline_init(&timeline, trace, options, arena, node_devices, err));
    WEIR_TRY(assign_queues(&queues, &timeline, cluster, err));
    give_quotas(&queues, &timeline, capacity_milli);
    metrics_init(&timeline.metrics, arena, queues.n, trace->n_jobs, capacity_milli);
    metrics_queues(&queues, &timeline.metrics);
    weir_status status = policy_is_known(options->profile)
                             ? run_policy(&timeline, err)
                             : run_cycles(&timeline, cluster, &queues, report, err);
    if (status == WEIR_OK) {
        measure(&timeline, queues.list, queues.n, report);
        report->n_nodes = cluster->n_nodes;
    }
    timeline_fini(&timeline);
    return status;
}

weir_status weir_sim_run(const struct weir_sim_trace *trace, const struct weir_sim_cluster *cluster,
                         const struct weir_sim_options *options, struct weir_sim_report *out,
                         struct weir_error *err)
{
    struct weir_arena scratch;
    struct weir_sim_report report = {0};
    WEIR_TRY(check_options(options, err));
    weir_arena_init(&scratch, (size_t)16 << 30);
    weir_arena_init(&report.arena, (size_t)4 << 30);
    report.profile = weir_arena_strdup(&report.arena, options->profile);
    weir_status status = run(trace, cluster, options, &scratch, &report, err);
    weir_arena_fini(&scratch);
    if (status != WEIR_OK) {
        weir_sim_report_fini(&report);
        return status;
    }
    *out = report;
    return WEIR_OK;
}

void weir_sim_report_fini(struct weir_sim_report *report)
{
    if (report != NULL) {
        weir_arena_fini(&report->arena);
        *report = (struct weir_sim_report){0};
    }
}
