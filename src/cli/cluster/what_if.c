/** weir what-if: the scheduler's next cycle as it is, and with a change. */
#include "cli/cluster/queue_change.h"
#include "cli/command.h"
#include "cli/core/find.h"
#include "cli/ion/snapshot.h"

#include "sim/replay.h"
#include "sim/what_if.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct what_if_options {
    struct cli_common common;
    char *snapshot, *profile, *option, *job, *queue, *model, *accelerators, *priority, *quota,
        *limit, *weight, *add_node, *first, *shares, *set_quota, *guarantee, *times, *project,
        *parent;
    int64_t n_nodes;
};

static const struct weir_option what_if_options[] = {
    CLI_TEXT(what_if_options, snapshot, "snapshot", 0, "FILE",
             "What there is: nodes, queues, jobs (JSON)"),
    CLI_TEXT(what_if_options, job, "job", 0, "NAME", "Job that changes"),
    CLI_TEXT(what_if_options, accelerators, "accelerators", 0, "N",
             "It asks for so many instead, anew"),
    CLI_TEXT(what_if_options, priority, "priority", 0, "N", "Its priority"),
    CLI_TEXT(what_if_options, queue, "queue", 0, "NAME", "Queue that changes"),
    CLI_TEXT(what_if_options, model, "model", 0, "NAME",
             "Its share of this model's accelerators, instead of all"),
    CLI_TEXT(what_if_options, quota, "quota", 0, "N", "Its guaranteed accelerators; -1: unlimited"),
    CLI_LIST(what_if_options, limit, "limit", 0, "N",
             "Its most accelerators; -1: no limit. With --set-quota WHAT=N, as in weir queue set"),
    CLI_LIST(what_if_options, weight, "weight", 0, "N",
             "Its share of what is left over. With --set-quota WHAT=N, as in weir queue set"),
    WEIR_OPT(what_if_options, profile, "profile", 0, TEXT, "default", 0, 0, "NAME",
             "default or kai"),
    CLI_LIST(what_if_options, option, "option", 0, "NAME=VALUE",
             "An option of the profile; may be repeated"),
    CLI_TEXT(
        what_if_options, add_node, "add-node", 0, "NODE",
        "Of the server: one more node like this one, or of this pool of a cluster (CLUSTER/POOL)"),
    WEIR_OPT(what_if_options, n_nodes, "nodes", 0, INT, "1", 1, 1000, "N",
             "With --add-node: so many more"),
    CLI_TEXT(what_if_options, set_quota, "set-quota", 0, "QUEUE",
             "Of the server: this queue set otherwise, or a new one of this name"),
    CLI_LIST(what_if_options, guarantee, "guarantee", 0, "WHAT=N",
             "With --set-quota: its guarantee, as in weir queue set; may be repeated"),
    CLI_TEXT(what_if_options, times, "times", 0, "JSON",
             "With --set-quota: its shares at times of the week, as in weir queue set"),
    CLI_TEXT(what_if_options, project, "project", 0, "NAME",
             "With --set-quota: whose jobs wait in it"),
    CLI_TEXT(what_if_options, parent, "parent", 0, "QUEUE", "With --set-quota: what it is part of"),
    CLI_TEXT(what_if_options, shares, "shares", 0, "JSON",
             "With --set-quota: all its shares: {\"cpus\": {\"guarantee\": 8}}"),
    CLI_TEXT(what_if_options, first, "first", 0, "JOB",
             "Of the server: this job before the others of its queue"),
    CLI_COMMON_OPTIONS(what_if_options),
};

/** A number that may be absent, times `scale`. */
static weir_status read_number(const char *flag, const char *text, double low, double scale,
                               int64_t *out, struct weir_error *err)
{
    char *end;
    if (text == NULL) {
        return WEIR_OK;
    }
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value) || value < low || value > 1e9) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--%s: expected a number from %g, got \"%.40s\"", flag, low, text);
    }
    *out = value < 0 && scale != 1 ? WEIR_SCHED_UNLIMITED : (int64_t)llround(value * scale);
    return WEIR_OK;
}

static weir_status read_change(const struct what_if_options *options,
                               struct weir_sim_change *change, struct weir_error *err)
{
    weir_sim_change_init(change);
    change->job = options->job;
    change->queue = options->queue;
    change->model = options->model;
    WEIR_TRY(read_number("accelerators", options->accelerators, 1, 1, &change->accelerators, err));
    WEIR_TRY(read_number("priority", options->priority, -1e9, 1, &change->priority, err));
    WEIR_TRY(read_number("quota", options->quota, -1, 1000, &change->quota_milli, err));
    WEIR_TRY(read_number("limit", options->limit, -1, 1000, &change->limit_milli, err));
    WEIR_TRY(read_number("weight", options->weight, 0, 1, &change->weight, err));
    bool job_changes = options->accelerators != NULL || options->priority != NULL;
    bool queue_changes =
        options->quota != NULL || options->limit != NULL || options->weight != NULL;
    if (job_changes != (options->job != NULL) || queue_changes != (options->queue != NULL) ||
        (options->model != NULL && !queue_changes)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "what changes? --job NAME with --accelerators or --priority, --queue "
                              "NAME, and perhaps --model NAME, with --quota, --limit or --weight");
    }
    return WEIR_OK;
}

static void print_counts(const json_t *answer)
{
    const json_t *before = json_object_get(answer, "before"),
                 *after = json_object_get(answer, "after");
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)before, name, value)
    {
        json_int_t was = json_integer_value(value),
                   is = json_integer_value(json_object_get(after, name));
        if (was != is) {
            printf("%s: %lld, before %lld\n", name, (long long)is, (long long)was);
        }
    }
}

static void print_answer(struct cli_call *call, json_t *answer)
{
    static const struct cli_column jobs[] = {{"job", "JOB"},
                                             {"queue", "QUEUE"},
                                             {"before", "BEFORE"},
                                             {"after", "AFTER"},
                                             {"why_after", "WHY"}};
    static const struct cli_column queues[] = {{"queue", "QUEUE"},
                                               {"model", "MODEL"},
                                               {"fair_share_before", "FAIR SHARE BEFORE"},
                                               {"fair_share_after", "AFTER"},
                                               {"allocated_before", "ALLOCATED BEFORE"},
                                               {"allocated_after", "AFTER"}};
    json_t *changed_jobs = json_object_get(answer, "jobs"),
           *changed_queues = json_object_get(answer, "queues");
    bool has_jobs = json_array_size(changed_jobs) > 0,
         has_queues = json_array_size(changed_queues) > 0;
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return;
    }
    if (!has_jobs && !has_queues) {
        printf("Nothing changes in the next cycle.\n");
        return;
    }
    print_counts(answer);
    if (has_jobs) {
        (void)json_object_set(answer, "items", changed_jobs);
        cli_print_table(call, answer, jobs, WEIR_ARRAY_LEN(jobs));
    }
    if (has_jobs && has_queues) {
        printf("\n");
    }
    if (has_queues) {
        (void)json_object_set(answer, "items", changed_queues);
        cli_print_table(call, answer, queues, WEIR_ARRAY_LEN(queues));
    }
}

/* One row for each queue and resource that has something. */
static json_t *queue_rows(const json_t *queues)
{
    static const char *const resources[] = {"accelerators", "cpus"};
    json_t *rows = json_array(), *queue;
    size_t i;
    json_array_foreach((json_t *)queues, i, queue)
    {
        for (size_t r = 0; r < WEIR_ARRAY_LEN(resources); r++) {
            json_t *row =
                json_pack("{s:O,s:s}", "queue", json_object_get(queue, "name"), "of", resources[r]);
            bool has_some = false;
            static const char *const members[] = {"guarantee", "used", "borrowed", "waiting"};
            for (size_t m = 0; m < WEIR_ARRAY_LEN(members); m++) {
                const json_t *was = json_object_get(
                    json_object_get(json_object_get(queue, "before"), members[m]), resources[r]);
                const json_t *is = json_object_get(
                    json_object_get(json_object_get(queue, "after"), members[m]), resources[r]);
                has_some = has_some || json_number_value(was) != 0 || json_number_value(is) != 0;
                json_object_set_new(
                    row, members[m],
                    json_sprintf("%.10g → %.10g", json_number_value(was), json_number_value(is)));
            }
            if (has_some) {
                json_array_append(rows, row);
            }
            json_decref(row);
        }
    }
    return rows;
}

static void print_queues(struct cli_call *call, json_t *answer)
{
    static const struct cli_column columns[] = {{"queue", "QUEUE"},         {"of", "OF"},
                                                {"guarantee", "GUARANTEE"}, {"used", "USED"},
                                                {"borrowed", "BORROWED"},   {"waiting", "WAITING"}};
    const json_t *guarantees = json_object_get(answer, "guarantees");
    json_t *rows = queue_rows(json_object_get(answer, "queues"));
    (void)json_object_set(answer, "items", rows);
    if (json_array_size(rows) > 0) {
        printf("\n");
        cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    }
    json_decref(rows);
    if (json_is_false(json_object_get(guarantees, "can_be_kept"))) {
        printf("\nIt could not be kept: %s.\n",
               json_string_value(json_object_get(guarantees, "why")));
    }
}

static void print_live(struct cli_call *call, json_t *answer)
{
    static const struct cli_column columns[] = {{"name", "JOB"},    {"project", "PROJECT"},
                                                {"queue", "QUEUE"}, {"before", "BEFORE"},
                                                {"after", "AFTER"}, {"why_after", "WHY"}};
    json_t *jobs = json_object_get(answer, "jobs");
    json_int_t n_others = json_integer_value(json_object_get(answer, "n_others"));
    if (cli_is_json(call)) {
        cli_print_json(answer);
        return;
    }
    if (json_array_size(jobs) == 0 && n_others == 0) {
        printf("For no job the next cycle changes.\n");
    } else {
        print_counts(answer);
    }
    if (json_array_size(jobs) > 0) {
        (void)json_object_set(answer, "items", jobs);
        cli_print_table(call, answer, columns, WEIR_ARRAY_LEN(columns));
    }
    if (n_others > 0) {
        printf("%s%lld job%s of other projects.\n", json_array_size(jobs) > 0 ? "And " : "",
               (long long)n_others, n_others == 1 ? "" : "s");
    }
    print_queues(call, answer);
}

/* What the flags say of the queue, over what it is; one that is not there is new. */
static weir_status add_queue(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct what_if_options *options = call->options;
    const struct queue_change change = {.project = options->project,
                                        .parent = options->parent,
                                        .guarantee = options->guarantee,
                                        .limit = options->limit,
                                        .weight = options->weight,
                                        .times = options->times};
    json_t *shown = NULL, *shares;
    struct weir_error missing;
    weir_status status =
        cli_rest(call, "GET", cli_path1(call, "/api/v1/queues/{}", options->set_quota), NULL,
                 &shown, &missing);
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return weir_error_set(err, status, "%s", missing.message);
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *queue = status == WEIR_OK ? queue_change_kept(shown) : json_object();
    json_decref(shown);
    if (options->shares != NULL) {
        WEIR_TRY(
            weir_json_parse(options->shares, strlen(options->shares), "--shares", &shares, err));
        json_object_set_new(queue, "shares", shares);
    }
    WEIR_TRY(queue_change_apply(call, &change, queue, err));
    json_object_update(body, queue);
    json_object_set_new(body, "queue", json_string(options->set_quota));
    return WEIR_OK;
}

/* Ask the server, of what it has now. */
static weir_status ask_server(struct cli_call *call, struct weir_error *err)
{
    const struct what_if_options *options = call->options;
    json_t *answer;
    char *first = NULL;
    bool has_change = options->shares != NULL || options->guarantee != NULL ||
                      options->limit != NULL || options->weight != NULL || options->times != NULL ||
                      options->project != NULL || options->parent != NULL;
    if ((options->set_quota != NULL) != has_change) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--set-quota QUEUE goes with what changes of it: --guarantee, "
                              "--limit, --weight, --times, --project, --parent or --shares");
    }
    if (options->first != NULL) {
        WEIR_TRY(cli_find(call, &find_job, options->first, &first, err));
    }
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s*,s:s*}", "add_node", options->add_node, "first", first);
    if (options->add_node != NULL) {
        json_object_set_new(body, "n_nodes", json_integer(options->n_nodes));
    }
    if (options->set_quota != NULL) {
        WEIR_TRY(add_queue(call, body, err));
    }
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/what-if", body, &answer, err));
    print_live(call, answer);
    json_decref(answer);
    return WEIR_OK;
}

static weir_status run_what_if(struct cli_call *call, struct weir_error *err)
{
    const struct what_if_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    struct weir_sched_profile sched;
    struct weir_sim_change change;
    struct cli_snapshot snapshot;
    if (options->snapshot == NULL) {
        return ask_server(call, err);
    }
    if (options->add_node != NULL || options->set_quota != NULL || options->first != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--add-node, --set-quota and --first ask the server; of a snapshot "
                              "ask --job and --queue");
    }
    WEIR_TRY(read_change(options, &change, err));
    WEIR_TRY(weir_sched_profile_named(options->profile, &sched, err));
    WEIR_TRY(weir_sim_options_set(options->option, call->arena, NULL, &sched, err));
    WEIR_TRY(cli_snapshot_open(options->snapshot, &snapshot, err));
    weir_status status = weir_sim_what_if(&snapshot.is, &sched, &change, &answer, err);
    cli_snapshot_close(&snapshot);
    if (status == WEIR_OK) {
        print_answer(call, answer);
    }
    return status;
}

const struct cli_command cli_what_if = {
    .name = "what-if",
    .usage = "--add-node NODE | --set-quota QUEUE --guarantee WHAT=N … | --first JOB | --snapshot "
             "FILE …",
    .summary = "Show what a change would do in the scheduler's next cycle",
    .help =
        "Asks the server what its next cycle would do with one more node, a queue set "
        "otherwise or a new one, or a job first.\n"
        "With --snapshot plans a snapshot as it is and with the change, and shows which jobs would "
        "start, wait "
        "or be evicted\n"
        "instead, and why. Nothing is changed. A running job that is asked about is asked for "
        "anew.",
    CLI_WORDS(0, 0),
    CLI_OPTIONS(what_if_options, what_if_options),
    .run = run_what_if,
};
