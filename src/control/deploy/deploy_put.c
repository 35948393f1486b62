/** What people ask of deployments and aliases, checked against what there is. */
#include "control/alias.h"
#include "control/deploy.h"
#include "framework/framework.h"

#include "base/names.h"
#include "base/quantity.h"
#include "store/identity.h"
#include "store/stmt.h"
#include "store/table.h"
#include "track/registry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 60
#define GIB       ((int64_t)1 << 30)

struct request {
    char *model, *version, *mirror;
    const json_t *traffic, *replicas, *memory;
    int64_t batch_max, delay_max_us, queue_max, cpu_millis, gpus, idle_after_ms, hold_ms;
};

/* -1: as it was. */
const struct weir_option control_deploy_options[CONTROL_DEPLOY_N_OPTIONS] = {
    WEIR_OPT_JSON(request, model, "model", TEXT, 0, NULL, 0, 0,
                  "Model whose versions answer; of a deployment that is there it stays"),
    WEIR_OPT_JSON(
        request, version, "version", TEXT, 0, NULL, 0, 0,
        "Version that gets all traffic: v3, an alias, or @ALIAS to follow that wherever it "
        "moves; else the newest when the deployment is made"),
    WEIR_OPT_JSON(request, traffic, "traffic", JSON, 0, NULL, 0, 0,
                  "Shares of versions: \"v3=90,v4=10\", or [{version, percent}]"),
    WEIR_OPT_JSON(request, mirror, "mirror", TEXT, 0, NULL, 0, 0,
                  "Version that gets a copy of each request, whose answer is compared and dropped; "
                  "\"none\": none"),
    WEIR_OPT_JSON(request, replicas, "replicas", JSON, 0, NULL, 0, 0,
                  "Replicas by load: \"A..B\", or a number; 0..B goes down to none; else 1"),
    WEIR_OPT_JSON(request, batch_max, "batch-max", INT, 0, "-1", -1, WEIR_DEPLOY_BATCH_MAX,
                  "Requests that one computation takes at most; else 8"),
    WEIR_OPT_JSON(request, delay_max_us, "delay-max-us", INT, 0, "-1", -1, WEIR_DEPLOY_DELAY_MAX_US,
                  "How long a request waits for others, in us; else 2000"),
    WEIR_OPT_JSON(request, queue_max, "queue-max", INT, 0, "-1", -1, WEIR_DEPLOY_QUEUE_MAX,
                  "Requests that wait in one replica at most; else 1024"),
    WEIR_OPT_JSON(request, cpu_millis, "cpus", CPUS, 0, "-1", -1, WEIR_FRAMEWORK_CPUS_MAX,
                  "CPUs of each replica: 2, 0.5 or 500m; rounded up, its computing threads; else "
                  "0.1"),
    WEIR_OPT_JSON(request, memory, "memory", JSON, 0, NULL, 0, 0,
                  "Memory of each replica: bytes, or a text as 4GiB; 0: no limit"),
    WEIR_OPT_JSON(request, gpus, "gpus", INT, 0, "-1", -1, 64,
                  "Accelerators of each replica; else 0"),
    WEIR_OPT_JSON(request, idle_after_ms, "idle-after-ms", INT, 0, "-1", -1,
                  WEIR_DEPLOY_IDLE_MAX_MS,
                  "Load that fewer replicas could bear for so long makes them fewer; else 60000"),
    WEIR_OPT_JSON(request, hold_ms, "hold-ms", INT, 0, "-1", -1, WEIR_DEPLOY_HOLD_MAX_MS,
                  "How long a request waits at most for a first replica; else 30000"),
};

static const struct weir_deploy_wanted defaults = {.replicas_min = 1,
                                                   .replicas_max = 1,
                                                   .batch_max = 8,
                                                   .delay_max_us = 2000,
                                                   .queue_max = 1024,
                                                   .cpu_millis = WEIR_FRAMEWORK_SERVICE_CPU_MILLIS,
                                                   .idle_after_ms = 60000,
                                                   .hold_ms = 30000};

/* ---- models ---------------------------------------------------------------------------------- */

static weir_status no_model(struct weir_txn *txn, const char *model, struct weir_arena *arena,
                            struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_INT("deleted_ms", EQ, 0)),
                                     .limit = WEIR_QUERY_LIMIT_MAX};
    struct weir_nearest nearest = {0};
    void *items;
    size_t n;
    WEIR_TRY(weir_txn_list(txn, &weir_model_resource, &query, arena, &items, &n, NULL, err));
    for (size_t i = 0; i < n; i++) {
        weir_nearest_see(&nearest, model, strlen(model), ((struct weir_model *)items)[i].name);
    }
    if (nearest.name != NULL) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no model \"%.*s\"; did you mean \"%s\"?", SHOWN_MAX, model,
                              nearest.name);
    }
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "there is no model \"%.*s\": `weir get models` lists them, `weir model "
                          "push NAME FILE` makes one",
                          SHOWN_MAX, model);
}

static weir_status list_of_model(struct weir_txn *txn, const struct weir_resource *resource,
                                 const char *model, struct weir_arena *arena, void **out,
                                 size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("model", EQ, model)),
                                     .order_by = "version", .limit = WEIR_QUERY_LIMIT_MAX};
    return weir_txn_list(txn, resource, &query, arena, out, out_n, NULL, err);
}

weir_status control_share_model(struct weir_txn *txn, const char *model, struct weir_arena *arena,
                                struct weir_model *out_model, struct weir_share_model *out,
                                struct weir_error *err)
{
    char **texts;
    void *rows;
    size_t n;
    weir_status status = weir_model_get(txn, model, arena, out_model, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        return no_model(txn, model, arena, err);
    }
    WEIR_TRY(status);
    /* Numbers only: a version's record can weigh megabytes. */
    WEIR_TRY(weir_txn_query_texts(
        txn,
        "SELECT version FROM model_versions WHERE model = :model AND deleted_ms = 0"
        " ORDER BY version",
        WEIR_BINDS(WEIR_BIND_TEXT("model", out_model->name)), arena, &texts, &n, err));
    int64_t *versions = WEIR_ARENA_ARRAY(arena, n + 1, int64_t);
    for (size_t i = 0; i < n; i++) {
        versions[i] = strtoll(texts[i], NULL, 10);
    }
    *out =
        (struct weir_share_model){.name = out_model->name, .versions = versions, .n_versions = n};
    WEIR_TRY(
        list_of_model(txn, &weir_model_alias_resource, out_model->name, arena, &rows, &n, err));
    struct weir_share_alias *aliases = WEIR_ARENA_ARRAY(arena, n + 1, struct weir_share_alias);
    for (size_t i = 0; i < n; i++) {
        const struct weir_model_alias *row = (const struct weir_model_alias *)rows + i;
        aliases[i] = (struct weir_share_alias){row->alias, row->version};
    }
    out->aliases = aliases;
    out->n_aliases = n;
    return WEIR_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

static struct weir_deploy_wanted wanted_of(const struct weir_deploy_state *state)
{
    const struct weir_deployment *now = &state->deployment;
    return (struct weir_deploy_wanted){.shares = weir_deploy_shares(state, false),
                                       .follows = now->follows,
                                       .mirror = now->mirror,
                                       .replicas_min = now->replicas_min,
                                       .replicas_max = now->replicas_max,
                                       .batch_max = now->batch_max,
                                       .delay_max_us = now->delay_max_us,
                                       .queue_max = now->queue_max,
                                       .cpu_millis = now->cpu_millis,
                                       .memory_bytes = now->memory_bytes,
                                       .gpus = now->gpus,
                                       .idle_after_ms = now->idle_after_ms,
                                       .hold_ms = now->hold_ms};
}

/* "0..4", "2", 2. */
static weir_status read_replicas(const json_t *value, struct weir_deploy_wanted *wanted,
                                 struct weir_error *err)
{
    long long lo = -1, hi = -1;
    if (json_is_integer(value)) {
        lo = hi = json_integer_value(value);
    } else if (json_is_string(value)) {
        char *end;
        const char *text = json_string_value(value);
        lo = hi = strtoll(text, &end, 10);
        bool is_range = end != text && strncmp(end, "..", 2) == 0 && end[2] != '\0';
        hi = is_range ? strtoll(end + 2, &end, 10) : hi;
        lo = *end == '\0' && end != text ? lo : -1;
    }
    if (lo < 0 || hi < lo || hi < 1 || hi > WEIR_DEPLOY_REPLICAS_MAX) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "$.replicas: expected A..B or a number, from 0 to %d, as in 0..4 or 2; "
            "B is at least 1 (`weir undeploy` ends a deployment)",
            WEIR_DEPLOY_REPLICAS_MAX);
    }
    wanted->replicas_min = lo;
    wanted->replicas_max = hi;
    return WEIR_OK;
}

static weir_status read_memory(const json_t *value, int64_t *out, struct weir_error *err)
{
    int64_t bytes = -1;
    if (json_is_integer(value)) {
        bytes = json_integer_value(value);
    } else if (!json_is_string(value) || !weir_bytes_parse(json_string_value(value), &bytes)) {
        bytes = -1;
    }
    if (bytes < 0 || bytes > 1024 * 1024 * GIB) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.memory: expected bytes, or a text as 4GiB; 0 is no limit");
    }
    if (bytes > 0 && bytes < WEIR_REQUEST_MEMORY_LEAST) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.memory: %lld bytes is too little for any replica: give the unit, "
                              "as 4GiB; 0 is no limit",
                              (long long)bytes);
    }
    *out = bytes;
    return WEIR_OK;
}

static void take_number(int64_t given, int64_t *member)
{
    *member = given >= 0 ? given : *member;
}

static weir_status read_numbers(const struct request *request, struct weir_deploy_wanted *wanted,
                                struct weir_error *err)
{
    if (request->batch_max == 0 || request->queue_max == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected 1 or more",
                              request->batch_max == 0 ? "batch_max" : "queue_max");
    }
    take_number(request->batch_max, &wanted->batch_max);
    take_number(request->delay_max_us, &wanted->delay_max_us);
    take_number(request->queue_max, &wanted->queue_max);
    take_number(request->cpu_millis, &wanted->cpu_millis);
    take_number(request->gpus, &wanted->gpus);
    take_number(request->idle_after_ms, &wanted->idle_after_ms);
    take_number(request->hold_ms, &wanted->hold_ms);
    if (request->memory != NULL && !json_is_null(request->memory)) {
        WEIR_TRY(read_memory(request->memory, &wanted->memory_bytes, err));
    }
    if (request->replicas != NULL && !json_is_null(request->replicas)) {
        WEIR_TRY(read_replicas(request->replicas, wanted, err));
    }
    return WEIR_OK;
}

/* An alias, and no version's number: that moves nowhere. */
static weir_status read_followed(const struct weir_share_model *model, const char *alias,
                                 struct weir_deploy_wanted *wanted, struct weir_error *err)
{
    int64_t version;
    if (!control_alias_is_valid(alias)) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.version: expected an alias behind \"@\"");
    }
    WEIR_TRY(weir_share_version_read(model, alias, strlen(alias), "$.version", &version, err));
    wanted->shares = weir_shares_of(version);
    wanted->follows = alias;
    return WEIR_OK;
}

static weir_status read_versions(const struct request *request,
                                 const struct weir_share_model *model, bool is_new,
                                 struct weir_deploy_wanted *wanted, struct weir_error *err)
{
    bool has_traffic = request->traffic != NULL && !json_is_null(request->traffic);
    int64_t version = 0;
    if (has_traffic && request->version != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.traffic: give either a version or shares, not both");
    }
    if (has_traffic || request->version != NULL) {
        wanted->follows = NULL;
    }
    if (has_traffic) {
        WEIR_TRY(weir_shares_read(model, request->traffic, "$.traffic", &wanted->shares, err));
    } else if (request->version != NULL && request->version[0] == '@') {
        WEIR_TRY(read_followed(model, request->version + 1, wanted, err));
    } else if (request->version != NULL) {
        WEIR_TRY(weir_share_version_read(model, request->version, strlen(request->version),
                                         "$.version", &version, err));
        wanted->shares = weir_shares_of(version);
    } else if (is_new && model->n_versions == 0) {
        return weir_share_version_read(model, "1", 1, "$.model", &version, err);
    } else if (is_new) {
        wanted->shares = weir_shares_of(model->versions[model->n_versions - 1]);
    }
    if (request->mirror != NULL && strcmp(request->mirror, "none") == 0) {
        wanted->mirror = 0;
    } else if (request->mirror != NULL) {
        WEIR_TRY(weir_share_version_read(model, request->mirror, strlen(request->mirror),
                                         "$.mirror", &wanted->mirror, err));
    }
    return WEIR_OK;
}

/* The deployment as it is, or a new one. */
static weir_status load_or_new(struct control *control, struct weir_txn *txn, const char *name,
                               const char *model, struct weir_deploy_state *out,
                               struct weir_error *err)
{
    struct weir_error missing;
    struct weir_model found;
    struct weir_share_model ignored;
    char secret[WEIR_SECRET_BYTES];
    weir_status status = weir_deploy_load(txn, name, control->arena, out, &missing);
    if (status != WEIR_ERR_NOT_FOUND) {
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "%s", missing.message);
        }
        return model == NULL || strcmp(model, out->deployment.model) == 0
                   ? WEIR_OK
                   : weir_error_set(err, WEIR_ERR_CONFLICT,
                                    "deployment \"%s\" serves model \"%s\": take another name for "
                                    "\"%.*s\" (--as), or `weir undeploy %s` first",
                                    name, out->deployment.model, SHOWN_MAX, model, name);
    }
    if (!weir_name_is_valid(name)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "deployment \"%.*s\": not a name (1 to 63 of a-z 0-9 . _ -, first a letter or digit)",
            SHOWN_MAX, name);
    }
    if (model == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.model: missing (%s)", missing.message);
    }
    WEIR_TRY(control_share_model(txn, model, control->arena, &found, &ignored, err));
    weir_secret_make(secret);
    weir_deploy_new(name, found.project, found.name, secret, control->actor, control->now_ms,
                    control->arena, out);
    return WEIR_OK;
}

static weir_status read_wanted(struct control *control, struct weir_txn *txn,
                               const struct request *request, const struct weir_deploy_state *state,
                               struct weir_deploy_wanted *out, struct weir_error *err)
{
    struct weir_model found;
    struct weir_share_model model;
    struct weir_deploy_wanted wanted = state->is_new ? defaults : wanted_of(state);
    WEIR_TRY(
        control_share_model(txn, state->deployment.model, control->arena, &found, &model, err));
    WEIR_TRY(read_numbers(request, &wanted, err));
    WEIR_TRY(read_versions(request, &model, state->is_new, &wanted, err));
    *out = wanted;
    return WEIR_OK;
}

static weir_status check_one(struct control *control, struct weir_txn *txn, const char *model,
                             int64_t number, struct weir_error *err)
{
    struct weir_model_version version;
    WEIR_TRY(weir_model_version_get(txn, model, number, control->arena, &version, err));
    return weir_version_check_servable(&version, err);
}

/* What a registry holds need not be what can be served. */
static weir_status check_servable(struct control *control, struct weir_txn *txn, const char *model,
                                  const struct weir_deploy_wanted *wanted, struct weir_error *err)
{
    for (size_t i = 0; i < wanted->shares.n; i++) {
        WEIR_TRY(check_one(control, txn, model, wanted->shares.items[i].version, err));
    }
    return wanted->mirror > 0 ? check_one(control, txn, model, wanted->mirror, err) : WEIR_OK;
}

weir_status control_deploy_follow(struct control *control, struct weir_txn *txn, const char *name,
                                  int64_t version, struct weir_error *err)
{
    struct weir_deploy_state state;
    WEIR_TRY(weir_deploy_load(txn, name, control->arena, &state, err));
    struct weir_deploy_wanted wanted = wanted_of(&state);
    wanted.shares = weir_shares_of(version);
    WEIR_TRY(check_servable(control, txn, state.deployment.model, &wanted, err));
    const struct weir_deploy_event event = {
        .type = WEIR_DEPLOY_EVENT_APPLIED, .actor = control->actor, .wanted = &wanted};
    return control_deploy_apply(control, txn, &state, &event, err);
}

weir_status control_deploy_put(struct control *control, struct weir_txn *txn, const char *name,
                               const json_t *body, struct weir_deploy_state *out,
                               struct weir_error *err)
{
    struct request request = {0};
    struct weir_deploy_state state;
    struct weir_deploy_wanted wanted;
    WEIR_TRY(weir_options_read(control_deploy_options, CONTROL_DEPLOY_N_OPTIONS, body, "$", NULL,
                               control->arena, &request, err));
    WEIR_TRY(load_or_new(control, txn, name, request.model, &state, err));
    WEIR_TRY(read_wanted(control, txn, &request, &state, &wanted, err));
    WEIR_TRY(check_servable(control, txn, state.deployment.model, &wanted, err));
    struct weir_shares shares = wanted.shares;
    WEIR_TRY(control_log(
        control, txn, "deployments", state.is_new ? "deployment_made" : "deployment_asked",
        weir_arena_printf(control->arena, "deployment/%s", name),
        weir_arena_printf(control->arena,
                          "Deployment %s of model %s: traffic %s, %lld..%lld replicas", name,
                          state.deployment.model, weir_shares_text(&shares, control->arena),
                          (long long)wanted.replicas_min, (long long)wanted.replicas_max),
        err));
    const struct weir_deploy_event event = {
        .type = WEIR_DEPLOY_EVENT_APPLIED, .actor = control->actor, .wanted = &wanted};
    WEIR_TRY(control_deploy_apply(control, txn, &state, &event, err));
    *out = state;
    return WEIR_OK;
}
