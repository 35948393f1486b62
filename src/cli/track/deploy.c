/** weir deploy, weir undeploy: models behind an address. */
#include "cli/core/verb.h"
#include "cli/core/wait.h"
#include "cli/job/job_ask.h"
#include "cli/track/model_name.h"
#include "cli/track/try_it.h"

#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

struct deploy_options {
    struct cli_common common;
    char *as, *replicas, *max_delay, *traffic, *mirror, *memory, *idle_after, *timeout;
    int64_t batch, queue, cpu_millis, gpus;
    bool is_waited_for, follows;
};

static const struct weir_option deploy_options[] = {
    CLI_COMMON_OPTIONS(deploy_options),
    CLI_TEXT(deploy_options, as, "as", 0, "DEPLOYMENT",
             "Name in the address of requests (else the model's)"),
    CLI_TEXT(deploy_options, replicas, "replicas", 0, "A..B",
             "Replicas by load: 0..4 goes down to none; or a number (1 if never said)"),
    CLI_TEXT(deploy_options, traffic, "traffic", 0, "SHARES",
             "Versions that share the requests: v3=90,v4=10"),
    CLI_TEXT(deploy_options, mirror, "mirror", 0, "VERSION",
             "Version that gets a copy of each request, whose answer is compared and dropped; "
             "none: none"),
    WEIR_OPT(deploy_options, batch, "batch", 0, INT, "-1", -1, 1024, "N",
             "Requests that one computation takes at most (8 if never said)"),
    CLI_TEXT(deploy_options, max_delay, "max-delay", 0, "TIME",
             "How long a request waits for others: 5ms, 500us (2ms if never said)"),
    WEIR_OPT(deploy_options, queue, "queue", 0, INT, "-1", -1, 65536, "N",
             "Requests that wait in one replica at most (1024 if never said)"),
    WEIR_OPT(deploy_options, cpu_millis, "cpus", 0, CPUS, "-1", -1, 4096, "N",
             "CPUs of each replica: 2, 0.5 or 500m; rounded up, its computing threads (0.1 if "
             "never said)"),
    CLI_TEXT(deploy_options, memory, "memory", 0, "BYTES",
             "Memory of each replica: 4GiB (no limit if never said)"),
    WEIR_OPT(deploy_options, gpus, "gpus", 0, INT, "-1", -1, 64, "N",
             "Accelerators of each replica (none if never said)"),
    CLI_TEXT(
        deploy_options, idle_after, "idle-after", 0, "TIME",
        "Load that fewer replicas could bear for so long makes them fewer (60s if never said)"),
    CLI_FLAG(deploy_options, follows, "follow", 0,
             "Follow the alias that is named: where it moves, all traffic goes"),
    WEIR_OPT(deploy_options, is_waited_for, "wait", 0, BOOL, "true", 0, 0, NULL,
             "Wait until it serves what was asked for, or cannot (--no-wait: answer at once)"),
    WEIR_OPT(deploy_options, timeout, "timeout", 0, TEXT, "5m", 0, 0, "TIME",
             "Wait so long at most"),
};

/* ---- the request ----------------------------------------------------------------------------- */

/* Milliseconds are too coarse for it: microseconds are read here. */
static weir_status read_delay(const char *text, json_t *body, struct weir_error *err)
{
    char *end;
    int64_t span_ms;
    long long us = strtoll(text, &end, 10);
    if (end == text || strcmp(end, "us") != 0) {
        bool is_read = weir_span_parse(text, &span_ms) && span_ms <= INT64_MAX / 1000;
        us = is_read ? span_ms * 1000 : -1;
    }
    if (us < 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--max-delay: expected a time, as in 5ms or 500us");
    }
    json_object_set_new(body, "delay_max_us", json_integer(us));
    return WEIR_OK;
}

static void put_text(json_t *body, const char *member, const char *text)
{
    if (text != NULL) {
        json_object_set_new(body, member, json_string(text));
    }
}

static void put_number(json_t *body, const char *member, int64_t number)
{
    if (number >= 0) {
        json_object_set_new(body, member, json_integer((json_int_t)number));
    }
}

static weir_status fill(struct cli_call *call, const char *model, const char *version, json_t *body,
                        struct weir_error *err)
{
    const struct deploy_options *options = call->options;
    int64_t span_ms;
    if (version != NULL && options->traffic != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--traffic: give either NAME@VERSION or shares, not both");
    }
    put_text(body, "model", model);
    if (options->follows && version == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--follow: name an alias, as in NAME@stable --follow");
    }
    put_text(body, "version",
             options->follows ? weir_arena_printf(call->arena, "@%s", version) : version);
    put_text(body, "traffic", options->traffic);
    put_text(body, "mirror", options->mirror);
    put_text(body, "replicas", options->replicas);
    put_text(body, "memory", options->memory);
    put_number(body, "batch_max", options->batch);
    put_number(body, "queue_max", options->queue);
    if (options->cpu_millis >= 0) {
        json_object_set_new(body, "cpus", weir_json_milli(options->cpu_millis));
    }
    put_number(body, "gpus", options->gpus);
    if (options->idle_after != NULL) {
        if (!weir_span_parse(options->idle_after, &span_ms)) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--idle-after: expected a time, as in 90s or 5m");
        }
        put_number(body, "idle_after_ms", span_ms);
    }
    return options->max_delay != NULL ? read_delay(options->max_delay, body, err) : WEIR_OK;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_settled(const json_t *deployment, const void *wanted)
{
    (void)wanted;
    return json_is_true(json_object_get(deployment, "is_settled"));
}

/* Until what was asked for serves, or has failed. Replaces *deployment. */
static weir_status wait_until_settled(struct cli_call *call, const char *name, json_t **deployment,
                                      struct weir_error *err)
{
    const struct deploy_options *options = call->options;
    struct cli_awaited awaited = {.what = weir_arena_printf(call->arena, "deployment %s", name),
                                  .path = cli_path1(call, "/api/v1/deployments/{}", name),
                                  .waits = cli_deployment_waits,
                                  .is_there = is_settled};
    json_t *last = NULL;
    WEIR_TRY(cli_wait_timeout(options->timeout, &awaited.timeout_ms, err));
    weir_status status = cli_wait_for(call, &awaited, &last, err);
    if (last != NULL) {
        json_decref(*deployment);
        *deployment = last;
    }
    return status == WEIR_ERR_TIMEOUT ? WEIR_OK : status; /* judge() says it */
}

/* That of the version with the largest share; a new reference, NULL if it cannot be had. */
static json_t *signature_of(struct cli_call *call, const json_t *deployment)
{
    struct weir_error ignored;
    double most = -1;
    int64_t number = 0;
    json_t *record, *version;
    size_t i;
    json_array_foreach(json_object_get(deployment, "versions"), i, version)
    {
        double percent = json_number_value(json_object_get(version, "percent"));
        if (percent > most) {
            most = percent;
            number = json_integer_value(json_object_get(version, "version"));
        }
    }
    const char *model = cli_text(call, deployment, "model");
    if (number == 0 || cli_model_record(call, model, number, &record, &ignored) != WEIR_OK) {
        return NULL;
    }
    json_t *signature = json_incref(json_object_get(record, "signature"));
    json_decref(record);
    return signature;
}

static void print_mirror(const json_t *deployment)
{
    size_t i;
    json_t *version;
    json_array_foreach(json_object_get(deployment, "versions"), i, version)
    {
        if (json_is_true(json_object_get(version, "is_mirror"))) {
            printf("  mirror   v%lld gets a copy of each request; its answers are compared and "
                   "dropped\n",
                   json_integer_value(json_object_get(version, "version")));
        }
    }
}

static void print_deployment(struct cli_call *call, const json_t *deployment)
{
    json_t *signature = signature_of(call, deployment);
    printf("%s\n", cli_fill(call,
                            "{name} is {state}: traffic {traffic}, {n_ready} of {replicas_min}.."
                            "{replicas_max} replicas",
                            NULL, deployment));
    print_mirror(deployment);
    printf("  address  %s/v2/models/%s/infer\n", weir_client_server(call->client),
           cli_text(call, deployment, "name"));
    try_it_print(call, cli_text(call, deployment, "name"), signature);
    json_decref(signature);
}

/* What became of it: an error if it does not serve what was asked for. */
static weir_status judge(struct cli_call *call, const json_t *deployment, struct weir_error *err)
{
    const struct deploy_options *options = call->options;
    const char *name = cli_text(call, deployment, "name");
    const char *reason = json_string_value(json_object_get(deployment, "reason"));
    const char *state = cli_text(call, deployment, "state");
    if (!options->is_waited_for) {
        return WEIR_OK;
    }
    if (!is_settled(deployment, NULL)) {
        const char *why = cli_deployment_waits(deployment);
        return weir_error_set(err, WEIR_ERR_TIMEOUT,
                              "%s does not serve it yet%s%s; it goes on: `weir describe deployment "
                              "%s` says how far it is",
                              name, why[0] != '\0' ? ": " : "", why, name);
    }
    if (reason != NULL && (strcmp(state, "FAILED") == 0 || strstr(reason, "could not be loaded"))) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE, "%s: %s", name, reason);
    }
    return WEIR_OK;
}

static void print_warnings(const json_t *deployment)
{
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(deployment, "warnings"), i, warning)
    {
        (void)fprintf(stderr, "weir: warning: %s\n", json_string_value(warning));
    }
}

/* `weir deploy NAME --traffic …` may name a deployment that is there: its model, then. */
static weir_status model_of_deployment(struct cli_call *call, char **model, struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *deployment = NULL;
    weir_status status = cli_rest(call, "GET", cli_path1(call, "/api/v1/deployments/{}", *model),
                                  NULL, &deployment, err);
    *model = status == WEIR_OK ? cli_text(call, deployment, "model") : *model;
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

static weir_status run_deploy(struct cli_call *call, struct weir_error *err)
{
    const struct deploy_options *options = call->options;
    char *model, *version;
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object(), *deployment = NULL;
    WEIR_TRY(cli_model_split(call, call->words[0], &model, &version, err));
    const char *name = options->as != NULL ? options->as : model;
    if (options->as == NULL) {
        WEIR_TRY(model_of_deployment(call, &model, err));
    }
    WEIR_TRY(fill(call, model, version, body, err));
    WEIR_TRY(cli_rest(call, "PUT", cli_path1(call, "/api/v1/deployments/{}", name), body,
                      &deployment, err));
    job_gpus_warn(call, options->gpus, NULL);
    print_warnings(deployment);
    if (options->is_waited_for) {
        WEIR_TRY(wait_until_settled(call, name, &deployment, err));
    }
    weir_status judged = judge(call, deployment, err);
    if (cli_is_json(call)) {
        cli_print_json(deployment);
    } else if (judged == WEIR_OK) {
        print_deployment(call, deployment);
    }
    return judged;
}

const struct cli_command cli_deploy = {
    .name = "deploy",
    .usage = "NAME[@v3|@ALIAS] [--as DEPLOYMENT] [--replicas A..B] [--traffic v3=90,v4=10] "
             "[--mirror v5] [--batch N] [--max-delay TIME] …",
    .summary = "Put a model behind an address, or change how it is served",
    .help =
        "The first time the newest version gets all traffic, unless one is named. Of a deployment "
        "that is\nthere, what is not said stays. Shares change at once if their versions are "
        "loaded; else when they\nare. A version that cannot be loaded gets no traffic: what was "
        "before stays.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(deploy_options, deploy_options),
    .run = run_deploy,
};

/* ---- scale ------------------------------------------------------------------------------------ */

static const struct weir_option scale_options[] = {
    CLI_COMMON_OPTIONS(deploy_options),
    CLI_TEXT(deploy_options, replicas, "replicas", 0, "A..B",
             "Replicas by load: 0..4 goes down to none; or a number"),
    WEIR_OPT(deploy_options, is_waited_for, "wait", 0, BOOL, "true", 0, 0, NULL,
             "Wait until it has them, or cannot (--no-wait: answer at once)"),
    WEIR_OPT(deploy_options, timeout, "timeout", 0, TEXT, "5m", 0, 0, "TIME",
             "Wait so long at most"),
};

static weir_status run_scale(struct cli_call *call, struct weir_error *err)
{
    static const char noun[] = "deployment/";
    struct deploy_options *options = call->options;
    json_t *deployment;
    options->replicas = call->n_words == 2 ? call->words[1] : options->replicas;
    options->batch = options->queue = options->cpu_millis = options->gpus =
        -1; /* stay as they are */
    if (options->replicas == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "how many? weir scale %s 2, or 0..4 by load",
                              call->words[0]);
    }
    if (strncmp(call->words[0], noun, sizeof noun - 1) == 0) {
        call->words[0] += sizeof noun - 1;
    }
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/deployments/{}", call->words[0]), NULL,
                      &deployment, err));
    json_decref(deployment);
    return run_deploy(call, err);
}

const struct cli_command cli_scale = {
    .name = "scale",
    .usage = "DEPLOYMENT N|A..B [--no-wait]",
    .summary = "Give a deployment more or fewer replicas",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(deploy_options, scale_options),
    .run = run_scale,
};

/* ---- undeploy -------------------------------------------------------------------------------- */

struct undeploy_options {
    struct cli_common common;
    bool is_forced;
};

static const struct weir_option undeploy_options[] = {
    CLI_COMMON_OPTIONS(undeploy_options),
    CLI_FLAG(undeploy_options, is_forced, "force", 0, "Also if a link of an ION leads to it"),
};

const struct cli_command cli_undeploy = {
    .name = "undeploy",
    .usage = "DEPLOYMENT [--force]",
    .summary = "Delete a deployment and stop its replicas; its model stays",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(undeploy_options, undeploy_options),
    CLI_VERBS({.call = "DELETE /api/v1/deployments/{0}",
               .query = "-force",
               .say = "{0}: deleted; its replicas stop",
               .gives = "name=0 deleted=true"}),
};
