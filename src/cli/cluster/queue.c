/** weir queue create, set, delete, list: what of the cluster is whose. */
#include "cli/cluster/queue_change.h"
#include "cli/core/verb.h"

#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

struct queue_options {
    struct cli_common common;
    char *project, *parent, *guarantee, *limit, *weight, *times, *priority, *min_run, *idle_after,
        *clusters, *overflow_after;
    bool force;
};

static const struct weir_option queue_options[] = {
    CLI_COMMON_OPTIONS(queue_options),
    CLI_TEXT(queue_options, project, "project", 0, "NAME",
             "Whose jobs wait in it (else it only has parts)"),
    CLI_TEXT(queue_options, parent, "parent", 0, "QUEUE", "What it is part of (else at the root)"),
    CLI_LIST(queue_options, guarantee, "guarantee", 0, "WHAT=N",
             "Never taken away while it is asked for; WHAT is cpus, accelerators, memory or a "
             "model of accelerator, N a number, 64GiB, or all; may be repeated"),
    CLI_LIST(queue_options, limit, "limit", 0, "WHAT=N",
             "Never more, though there is room; N may be none; may be repeated"),
    CLI_LIST(queue_options, weight, "weight", 0, "WHAT=N",
             "Its part of what nobody is owed; 0: nothing beyond the guarantee; may be repeated"),
    CLI_TEXT(queue_options, times, "times", 0, "JSON",
             "Other shares at times of the week: [{\"days\": [\"sat\"], \"from\": \"20:00\", "
             "\"until\": \"06:00\", \"shares\": {…}}], by UTC"),
    CLI_TEXT(queue_options, priority, "priority", 0, "N",
             "Among its siblings: the higher gets what is left over first; 100 if never said"),
    CLI_TEXT(queue_options, min_run, "min-run", 0, "TIME",
             "A job of it is not stopped for others before it has run for so long: 30m"),
    CLI_TEXT(queue_options, idle_after, "idle-after", 0, "TIME",
             "A job of it is held when its devices have been idle for so long: 1h; 0: never"),
    CLI_TEXT(queue_options, clusters, "clusters", 0, "NAME,NAME…",
             "Clusters whose nodes its jobs may have that name none, in this order; local: nodes "
             "that joined by themselves; nothing: its parent's"),
    CLI_TEXT(queue_options, overflow_after, "overflow-after", 0, "TIME",
             "A job of it waits for so long before nodes are asked of a cluster for it: 10m"),
    CLI_FLAG(queue_options, force, "force", 0,
             "Also if guarantees then are more in all than what the nodes have"),
};

/* ---- shares ---------------------------------------------------------------------------------- */

static bool is_resource(const char *name)
{
    return strcmp(name, "cpus") == 0 || strcmp(name, "accelerators") == 0 ||
           strcmp(name, "memory") == 0;
}

/* The share of a resource or of a model, made if it is not there. Borrowed. */
static json_t *share_of(json_t *shares, const char *name)
{
    json_t *in = shares;
    if (!is_resource(name)) {
        in = json_object_get(shares, "models");
        if (in == NULL) {
            in = json_object();
            json_object_set_new(shares, "models", in);
        }
    }
    json_t *share = json_object_get(in, name);
    if (share == NULL) {
        share = json_object();
        json_object_set_new(in, name, share);
    }
    return share;
}

/* "all" and "none" are no bound. */
static weir_status read_amount(const char *flag, const char *name, const char *text, json_t **out,
                               struct weir_error *err)
{
    char *end;
    int64_t bytes;
    bool is_weight = strcmp(flag, "weight") == 0;
    const char *unbounded = strcmp(flag, "limit") == 0 ? "none" : "all";
    if (!is_weight && strcmp(text, unbounded) == 0) {
        *out = json_null();
        return WEIR_OK;
    }
    if (!is_weight && strcmp(name, "memory") == 0 && weir_bytes_parse(text, &bytes)) {
        *out = json_integer((json_int_t)bytes);
        return WEIR_OK;
    }
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value <= 1e15)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--%s %s=%.40s: expected a number%s%s", flag,
                              name, text, is_weight ? "" : " or ", is_weight ? "" : unbounded);
    }
    bool is_whole = value == (double)(int64_t)value;
    *out = is_whole ? json_integer((json_int_t)value) : json_real(value);
    return WEIR_OK;
}

/* What others call them would be taken for a model of accelerator. */
static weir_status check_word(const char *flag, const char *word, struct weir_error *err)
{
    static const char *const others[][2] = {
        {"gpu", "accelerators"}, {"gpus", "accelerators"}, {"accelerator", "accelerators"},
        {"cpu", "cpus"},         {"mem", "memory"},        {"ram", "memory"},
        {"tpu", "accelerators"}};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        if (strcasecmp(word, others[i][0]) == 0) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--%s %s: here it is %s; or name a model of accelerator, as "
                                  "`weir get devices` shows them",
                                  flag, word, others[i][1]);
        }
    }
    return WEIR_OK;
}

static weir_status add_shares(struct cli_call *call, const char *flag, const char *list,
                              json_t *shares, struct weir_error *err)
{
    char *word;
    while ((word = cli_next_word(call, &list)) != NULL) {
        char *equals = strchr(word, '=');
        json_t *amount = NULL;
        if (equals == NULL || equals == word) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--%s %.40s: expected WHAT=N, as in cpus=8", flag, word);
        }
        *equals = '\0';
        WEIR_TRY(check_word(flag, word, err));
        WEIR_TRY(read_amount(flag, word, equals + 1, &amount, err));
        json_object_set_new(share_of(shares, word), flag, amount);
    }
    return WEIR_OK;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static weir_status change_span(const char *flag, const char *text, json_t *queue,
                               const char *member, struct weir_error *err)
{
    int64_t span_ms;
    if (text == NULL) {
        return WEIR_OK;
    }
    if (!weir_span_parse(text, &span_ms)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--%s: expected a time, as in 90s, 30m or 2h",
                              flag);
    }
    json_object_set_new(queue, member, json_integer((json_int_t)span_ms));
    return WEIR_OK;
}

static weir_status change_numbers(const struct queue_change *options, json_t *queue,
                                  struct weir_error *err)
{
    if (options->priority != NULL) {
        char *end;
        long long priority = strtoll(options->priority, &end, 10);
        if (end == options->priority || *end != '\0') {
            return weir_error_set(err, WEIR_ERR_INVALID, "--priority: expected an integer");
        }
        json_object_set_new(queue, "priority", json_integer(priority));
    }
    WEIR_TRY(change_span("min-run", options->min_run, queue, "min_run_ms", err));
    WEIR_TRY(change_span("idle-after", options->idle_after, queue, "idle_after_ms", err));
    WEIR_TRY(
        change_span("overflow-after", options->overflow_after, queue, "overflow_after_ms", err));
    if (options->times != NULL) {
        json_t *times;
        WEIR_TRY(weir_json_parse(options->times, strlen(options->times), "--times", &times, err));
        json_object_set_new(queue, "times", times);
    }
    return WEIR_OK;
}

weir_status queue_change_apply(struct cli_call *call, const struct queue_change *options,
                               json_t *queue, struct weir_error *err)
{
    json_t *shares = json_object_get(queue, "shares");
    if (!json_is_object(shares)) {
        shares = json_object();
        json_object_set_new(queue, "shares", shares);
    }
    WEIR_TRY(add_shares(call, "guarantee", options->guarantee, shares, err));
    WEIR_TRY(add_shares(call, "limit", options->limit, shares, err));
    WEIR_TRY(add_shares(call, "weight", options->weight, shares, err));
    if (options->project != NULL) {
        json_object_set_new(queue, "project", json_string(options->project));
    }
    if (options->parent != NULL) {
        json_object_set_new(queue, "parent",
                            options->parent[0] != '\0' ? json_string(options->parent)
                                                       : json_null());
    }
    if (options->clusters != NULL) {
        bool is_none = options->clusters[0] == '\0';
        json_object_set_new(queue, "clusters",
                            is_none ? json_null() : cli_list_of(options->clusters));
    }
    return change_numbers(options, queue, err);
}

/* As the queue is, or empty, to what the options say. */
static weir_status change(struct cli_call *call, json_t *queue, struct weir_error *err)
{
    const struct queue_options *options = call->options;
    const struct queue_change change = {
        options->project,    options->parent,   options->guarantee,     options->limit,
        options->weight,     options->times,    options->priority,      options->min_run,
        options->idle_after, options->clusters, options->overflow_after};
    return queue_change_apply(call, &change, queue, err);
}

static weir_status begin(struct cli_call *call, json_t *queue, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    const char *path = cli_path1(call, "/api/v1/queues/{}", call->words[0]);
    struct weir_error missing;
    bool is_there = cli_rest(call, "GET", path, NULL, &answer, &missing) == WEIR_OK &&
                    json_is_true(json_object_get(answer, "is_set"));
    return !is_there ? change(call, queue, err)
                     : weir_error_set(err, WEIR_ERR_EXISTS,
                                      "queue %s is there already: `weir queue set %s` changes it",
                                      call->words[0], call->words[0]);
}

json_t *queue_change_kept(const json_t *shown)
{
    static const char *const kept[] = {"parent",        "project",  "priority",
                                       "shares",        "times",    "min_run_ms",
                                       "idle_after_ms", "clusters", "overflow_after_ms"};
    json_t *queue = json_object();
    for (size_t i = 0; i < WEIR_ARRAY_LEN(kept); i++) {
        json_t *value = json_object_get(shown, kept[i]);
        if (value != NULL && !json_is_null(value)) {
            json_object_set(queue, kept[i], value);
        }
    }
    return queue;
}

/* What is not said stays as it is. */
static weir_status go_on(struct cli_call *call, json_t *queue, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *old = NULL, *kept = NULL;
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/queues/{}", call->words[0]), NULL, &old,
                      err));
    kept = queue_change_kept(old);
    json_object_update(queue, kept);
    return change(call, queue, err);
}

#define PUT_QUEUE .call = "PUT /api/v1/queues/{0}", .query = "-force", .body = ""

const struct cli_command cli_queue_create = {
    .name = "queue create",
    .usage = "NAME [--project NAME] [--parent QUEUE] [--guarantee WHAT=N …] [--limit WHAT=N …] "
             "[--weight WHAT=N …]",
    .summary = "Make a queue: what of the cluster is a project's, or a department's",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(queue_options, queue_options),
    CLI_VERBS({.prepare = begin, PUT_QUEUE, .say = "{0}: created"}),
};

const struct cli_command cli_queue_set = {
    .name = "queue set",
    .usage = "NAME [--guarantee WHAT=N …] [--limit WHAT=N …] [--weight WHAT=N …] …",
    .summary = "Change a queue; what is not said stays",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(queue_options, queue_options),
    CLI_VERBS({.prepare = go_on, PUT_QUEUE, .say = "{0}: set"}),
};

const struct cli_command cli_queue_delete = {
    .name = "queue delete",
    .usage = "NAME",
    .summary = "Delete a queue; its project's jobs go on without a guarantee",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.call = "DELETE /api/v1/queues/{0}", CLI_DONE(0, "deleted")}),
};

const struct cli_command cli_queue_list = {
    .name = "queue list",
    .usage = "[-o wide|json]",
    .summary = "List queues with what they are owed, use, borrow and wait for",
    .flags = CLI_WIDE,
    CLI_PLAIN,
    CLI_VERBS({.lists = "queues"}),
};

/* ---- past use -------------------------------------------------------------------------------- */

struct past_use_options {
    struct cli_common common;
    char *half_life, *weight;
};

static const struct weir_option past_use_options[] = {
    CLI_COMMON_OPTIONS(past_use_options),
    CLI_TEXT(past_use_options, half_life, "half-life", 0, "TIME",
             "After so long what was used counts half: 12h, 7d (7d if never said)"),
    CLI_TEXT(past_use_options, weight, "weight", 0, "K",
             "How much it counts; 1: a queue that has had twice its share gets nothing of what is "
             "left over while others ask; 0: not at all, as if never said"),
};

/* What is not said stays as it is. */
static weir_status change_past_use(const struct past_use_options *options, json_t *rule,
                                   struct weir_error *err)
{
    WEIR_TRY(change_span("half-life", options->half_life, rule, "half_life_ms", err));
    if (options->weight != NULL) {
        char *end;
        double weight = strtod(options->weight, &end);
        if (end == options->weight || *end != '\0' || !(weight >= 0 && weight <= 1e9)) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--weight: expected a number from 0 on");
        }
        json_object_set_new(rule, "weight", json_real(weight));
    }
    return WEIR_OK;
}

static weir_status run_past_use(struct cli_call *call, struct weir_error *err)
{
    const struct past_use_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *rule = NULL, *set = NULL;
    bool sets = options->half_life != NULL || options->weight != NULL;
    WEIR_TRY(cli_rest(call, "GET", "/api/v1/past-use", NULL, &rule, err));
    if (sets) {
        WEIR_TRY(change_past_use(options, rule, err));
        WEIR_TRY(cli_rest(call, "PUT", "/api/v1/past-use", rule, &set, err));
    }
    const json_t *is = sets ? set : rule;
    double days = json_number_value(json_object_get(is, "half_life_ms")) / 86400000;
    double weight = json_number_value(json_object_get(is, "weight"));
    cli_print_said(call, is,
                   weight > 0
                       ? weir_arena_printf(call->arena,
                                           "past use counts with weight %g; its half-life is %.4g "
                                           "days",
                                           weight, days)
                       : weir_arena_printf(call->arena,
                                           "past use does not count (weight 0); it is summed up "
                                           "with a half-life of %.4g days",
                                           days));
    return WEIR_OK;
}

const struct cli_command cli_queue_past_use = {
    .name = "queue past-use",
    .usage = "[--half-life TIME] [--weight K]",
    .summary =
        "Say how much of what is left over a queue gets that has had more than its share lately",
    .help =
        "Of queues with equal weights the one that has had less lately gets what is left over "
        "first. Guarantees\n"
        "and limits are as ever. `weir get queues` says what each has had, in times of its share.",
    .min_words = 0,
    .max_words = 0,
    CLI_OPTIONS(past_use_options, past_use_options),
    .run = run_past_use,
};
