/** weir simulate: what a scheduler would have done with this work on that cluster. */
#include "cli/command.h"
#include "cli/ion/snapshot.h"

#include "base/clock.h"
#include "base/file.h"
#include "sim/fill.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/what_if.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES_MAX    ((size_t)64 << 20)
#define FIRST_SEED        42 /**< Of the published results. */
#define PROGRESS_EVERY_MS 2000

struct simulate_options {
    struct cli_common common;
    char *trace, *cluster, *profile, *option, *html, *snapshot, *experiment, *protocol, *expected;
    int64_t gpus, gpus_per_node, seeds;
};

static const struct weir_option simulate_options[] = {
    CLI_LIST(simulate_options, trace, "trace", 0, "FILE",
             "Trace to replay (several for --experiment)"),
    CLI_TEXT(simulate_options, cluster, "cluster", 0, "FILE",
             "Nodes and queues (YAML), or a list of nodes (CSV)"),
    WEIR_OPT(simulate_options, gpus, "gpus", 0, INT, "0", 0, 1e9, "N",
             "Instead of a cluster file: so many accelerators"),
    WEIR_OPT(simulate_options, gpus_per_node, "gpus-per-node", 0, INT, "8", 1, 4096, "N",
             "With --gpus: accelerators of a node"),
    WEIR_OPT(simulate_options, profile, "profile", 0, TEXT, "default", 0, 0, "NAME",
             "default or kai; fifo, fifo-skip, sjf, las, static count accelerators only"),
    CLI_LIST(simulate_options, option, "option", 0, "NAME=VALUE",
             "An option of the profile or the replay; may be repeated"),
    CLI_TEXT(simulate_options, html, "html", 0, "FILE", "Also write the report as a page"),
    CLI_TEXT(simulate_options, snapshot, "snapshot", 0, "FILE",
             "Instead of a trace: what would the next cycle do with this snapshot?"),
    CLI_TEXT(simulate_options, experiment, "experiment", 0, "NAME",
             "Instead of a replay: fgd fills the cluster to compare placement rules"),
    CLI_TEXT(simulate_options, protocol, "protocol", 0, "NAME",
             "Old word for --experiment, accepted by this version"),
    WEIR_OPT(simulate_options, seeds, "seeds", 0, INT, "10", 1, 1000, "N",
             "With --experiment: runs, with seeds from 42 on"),
    CLI_TEXT(simulate_options, expected, "expected", 0, "FILE",
             "With --experiment: the authors' table of allocation, to be shown beside"),
    CLI_OUTPUT_OPTIONS(simulate_options),
};

static weir_status load_cluster(const struct simulate_options *options,
                                struct weir_sim_cluster *out, struct weir_error *err)
{
    if ((options->cluster != NULL) == (options->gpus > 0)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "which cluster? either --cluster FILE or --gpus N");
    }
    return options->cluster != NULL
               ? weir_sim_cluster_load(options->cluster, out, err)
               : weir_sim_cluster_uniform(options->gpus, options->gpus_per_node, out, err);
}

static weir_status load_rules(struct cli_call *call, struct weir_sim_options *replay,
                              struct weir_sched_profile *sched, struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    WEIR_TRY(weir_sim_profile_named(options->profile, sched, err));
    WEIR_TRY(weir_sim_options_set(options->option, call->arena, replay, sched, err));
    if (replay != NULL) {
        replay->profile = options->profile;
        replay->sched = sched;
    }
    return WEIR_OK;
}

/* ---- replay ---------------------------------------------------------------------------------- */

struct progress {
    int64_t last_ms;
    bool is_terminal, has_shown;
};

static void show_progress(void *context, int32_t n_done, int32_t n_jobs, int64_t now_ms)
{
    struct progress *progress = context;
    int64_t mono_ms = weir_mono_ms();
    if (mono_ms - progress->last_ms < PROGRESS_EVERY_MS) {
        return;
    }
    progress->last_ms = mono_ms;
    progress->has_shown = true;
    (void)fprintf(stderr,
                  progress->is_terminal ? "\r%d of %d jobs, hour %.0f "
                                        : "%d of %d jobs, hour %.0f\n",
                  n_done, n_jobs, (double)now_ms / 3600000);
}

static weir_status write_page(struct cli_call *call, const struct weir_sim_report *report,
                              struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    const char *slash = strrchr(options->trace, '/');
    struct weir_buf page;
    weir_buf_init(&page, PAGE_BYTES_MAX);
    weir_sim_report_html(
        report,
        weir_arena_printf(call->arena, "Replay of %s", slash != NULL ? slash + 1 : options->trace),
        &page);
    weir_status status =
        page.status != WEIR_OK
            ? weir_error_set(err, page.status, "the page is too large")
            : weir_file_write_atomic(options->html, page.data, page.len, 0644, err);
    weir_buf_fini(&page);
    return status;
}

static weir_status print_report(struct cli_call *call, const struct weir_sim_report *report,
                                struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    if (cli_is_json(call)) {
        json_t *value = weir_sim_report_json(report);
        cli_print_json(value);
        json_decref(value);
    } else {
        struct weir_buf text;
        weir_buf_init(&text, PAGE_BYTES_MAX);
        weir_sim_report_text(report, &text);
        (void)fputs(text.data, stdout);
        weir_buf_fini(&text);
    }
    return options->html != NULL ? write_page(call, report, err) : WEIR_OK;
}

static weir_status replay(struct cli_call *call, struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    struct weir_sim_trace trace = {0};
    struct weir_sim_cluster cluster = {0};
    struct weir_sim_report report = {0};
    struct weir_sched_profile sched;
    struct weir_sim_options replay_options;
    struct progress progress = {.last_ms = weir_mono_ms(),
                                .is_terminal = isatty(STDERR_FILENO) == 1};
    weir_status status;
    if (strchr(options->trace, '\n') != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "a replay plays one --trace");
    }
    weir_sim_options_init(&replay_options);
    WEIR_TRY(load_rules(call, &replay_options, &sched, err));
    replay_options.progress = show_progress;
    replay_options.progress_context = &progress;
    replay_options.mono_ns = weir_mono_ns;
    WEIR_TRY_GOTO(load_cluster(options, &cluster, err), status, done);
    WEIR_TRY_GOTO(weir_sim_trace_load(options->trace, &weir_sim_csv, &trace, err), status, done);
    WEIR_TRY_GOTO(weir_sim_run(&trace, &cluster, &replay_options, &report, err), status, done);
    if (progress.is_terminal && progress.has_shown) {
        (void)fputs("\r\x1b[K", stderr);
    }
    status = print_report(call, &report, err);
done:
    weir_sim_report_fini(&report);
    weir_sim_trace_fini(&trace);
    weir_sim_cluster_fini(&cluster);
    return status;
}

/* ---- experiment -------------------------------------------------------------------------------- */

/** "…/openb_pod_list_default.csv" is called "openb_pod_list_default" in the authors' table. */
static char *workload_name(struct cli_call *call, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = weir_arena_strdup(call->arena, slash != NULL ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot != NULL) {
        *dot = '\0';
    }
    return name;
}

static weir_status load_published(struct cli_call *call, const char *workload,
                                  struct weir_sim_published *out, struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    char *text;
    size_t len;
    *out = (struct weir_sim_published){0};
    if (options->expected == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_file_read(options->expected, PAGE_BYTES_MAX, call->arena, &text, &len, err));
    return weir_sim_published_parse(text, len, options->expected, workload, out, err);
}

static json_t *policy_row(const char *workload, const char *rule, int64_t n_seeds, double at_100,
                          double at_130)
{
    return json_pack("{s:s, s:s, s:I, s:f, s:f}", "workload", workload, "rule", rule, "seeds",
                     (json_int_t)n_seeds, "at_100_pct", at_100, "at_130_pct", at_130);
}

static weir_status fill_trace(struct cli_call *call, const char *path,
                              const struct weir_sim_cluster *cluster,
                              const struct weir_sched_profile *sched, json_t *items,
                              struct weir_error *err)
{
    const struct simulate_options *options = call->options;
    const char *workload = workload_name(call, path);
    struct weir_sim_trace trace;
    struct weir_sim_published published;
    double at_100 = 0, at_130 = 0;
    WEIR_TRY(load_published(call, workload, &published, err));
    WEIR_TRY(weir_sim_trace_load(path, &weir_sim_csv, &trace, err));
    weir_status status = WEIR_OK;
    for (int64_t i = 0; i < options->seeds && status == WEIR_OK; i++) {
        struct weir_sim_fill fill;
        status = weir_sim_fill(&trace, cluster, sched, (uint64_t)(FIRST_SEED + i), &fill, err);
        if (status == WEIR_OK) {
            at_100 += fill.allocated_pct[100] / (double)options->seeds;
            at_130 += fill.allocated_pct[130] / (double)options->seeds;
        }
    }
    weir_sim_trace_fini(&trace);
    if (status == WEIR_OK) {
        char *rule =
            weir_arena_printf(call->arena, "weir (%s, %s)", options->profile, sched->placement);
        (void)json_array_append_new(items,
                                    policy_row(workload, rule, options->seeds, at_100, at_130));
        for (int32_t i = 0; i < published.n_policies; i++) {
            (void)json_array_append_new(items, policy_row(workload, published.policies[i].name,
                                                          published.policies[i].n_seeds,
                                                          published.policies[i].at_100,
                                                          published.policies[i].at_130));
        }
    }
    return status;
}

static weir_status run_experiment(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {{"workload", "WORKLOAD"},
                                                {"rule", "RULE"},
                                                {"seeds", "SEEDS"},
                                                {"at_100_pct", "AT 100 %"},
                                                {"at_130_pct", "AT 130 %"}};
    const struct simulate_options *options = call->options;
    struct weir_sched_profile sched;
    struct weir_sim_cluster cluster;
    if (strcmp(options->experiment, "fgd") != 0) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND, "--experiment: there is fgd");
    }
    WEIR_TRY(load_rules(call, NULL, &sched, err));
    WEIR_TRY(load_cluster(options, &cluster, err));
    WEIR_AUTO(weir_json_auto_free) json_t *answer = json_pack("{s:[]}", "items");
    json_t *items = json_object_get(answer, "items");
    weir_status status = WEIR_OK;
    char *rest = weir_arena_strdup(call->arena, options->trace);
    for (char *path = strsep(&rest, "\n"); path != NULL && status == WEIR_OK;
         path = strsep(&rest, "\n")) {
        status = fill_trace(call, path, &cluster, &sched, items, err);
    }
    if (status == WEIR_OK) {
        cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    }
    weir_sim_cluster_fini(&cluster);
    return status;
}

/* ---- snapshot -------------------------------------------------------------------------------- */

static weir_status run_snapshot(struct cli_call *call, struct weir_error *err)
{
    static const struct cli_column columns[] = {
        {"job", "JOB"}, {"queue", "QUEUE"}, {"outcome", "OUTCOME"}, {"why", "WHY"}};
    const struct simulate_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    struct weir_sched_profile sched;
    struct cli_snapshot snapshot;
    WEIR_TRY(load_rules(call, NULL, &sched, err));
    WEIR_TRY(cli_snapshot_open(options->snapshot, &snapshot, err));
    weir_status status = weir_sim_next(&snapshot.is, &sched, &answer, err);
    cli_snapshot_close(&snapshot);
    if (status == WEIR_OK && cli_is_json(call)) {
        cli_print_json(answer);
    } else if (status == WEIR_OK) {
        (void)json_object_set(answer, "items", json_object_get(answer, "jobs"));
        cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    }
    return status;
}

/** What would be read and have no effect is refused. */
static weir_status check_flags(const struct simulate_options *options, struct weir_error *err)
{
    bool is_replay = options->snapshot == NULL && options->experiment == NULL;
    if (options->snapshot != NULL &&
        (options->cluster != NULL || options->gpus > 0 || options->experiment != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "a snapshot has its own nodes: leave out --cluster, --gpus and "
                              "--experiment");
    }
    if (!is_replay && options->html != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--html: only a replay has a page");
    }
    if (!is_replay && weir_sim_is_policy(options->profile)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--profile %s counts accelerators and places nothing: choose default "
                              "or kai",
                              options->profile);
    }
    if (options->experiment == NULL && options->expected != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--expected belongs to --experiment");
    }
    return WEIR_OK;
}

static weir_status run_simulate(struct cli_call *call, struct weir_error *err)
{
    struct simulate_options *options = call->options;
    if (options->protocol != NULL) {
        (void)fprintf(stderr, "weir: --protocol is now called --experiment\n");
        options->experiment = options->protocol;
    }
    WEIR_TRY(check_flags(options, err));
    if ((options->trace != NULL) == (options->snapshot != NULL)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "what to simulate? either --trace FILE or --snapshot FILE");
    }
    if (options->snapshot != NULL) {
        return run_snapshot(call, err);
    }
    return options->experiment != NULL ? run_experiment(call, err) : replay(call, err);
}

const struct cli_command cli_simulate = {
    .name = "simulate",
    .usage = "--trace FILE (--cluster FILE | --gpus N) [--profile NAME] …",
    .summary = "Replay a trace of jobs on a cluster under a scheduling profile",
    .help = "Plays what people asked for, far faster than real time, and reports allocation, "
            "completion and\n"
            "waiting by size of job, fairness, evictions and kept guarantees. Works on this "
            "machine, without a\n"
            "server. Traces, cluster files and options: docs/reference/simulator.md.",
    CLI_WORDS(0, 0),
    CLI_OPTIONS(simulate_options, simulate_options),
    .run = run_simulate,
};
