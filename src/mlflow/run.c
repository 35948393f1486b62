/** Operations on runs. */
#include "mlflow/call.h"

#include "base/rng.h"
#include "base/uuid.h"
#include "store/table.h"

#include <stdio.h>
#include <string.h>

#define TAG_NAME            "mlflow.runName"
#define TAG_USER            "mlflow.user"
#define NAME_MAX_CHARACTERS 1000

/* Words of names. */
static const char *const adjectives[] = {
    "amber",  "brave", "calm",   "clear", "crisp",  "eager", "early", "fair",
    "gentle", "glad",  "golden", "green", "honest", "keen",  "kind",  "late",
    "light",  "loud",  "lucky",  "merry", "mild",   "neat",  "noble", "plain",
    "proud",  "quick", "quiet",  "ready", "silver", "slow",  "warm",  "wise",
};
static const char *const nouns[] = {
    "alder", "badger", "beech", "birch", "brook",  "crane", "dune",  "eel",
    "elm",   "falcon", "finch", "fox",   "grebe",  "hare",  "heron", "lark",
    "lynx",  "maple",  "marsh", "mill",  "newt",   "oak",   "otter", "owl",
    "perch", "pike",   "reed",  "ridge", "salmon", "stork", "trout", "wren",
};

char *mlflow_make_name(struct weir_arena *arena)
{
    unsigned char bytes[4];
    weir_random_bytes(bytes, sizeof bytes);
    return weir_arena_printf(arena, "%s-%s-%d", adjectives[bytes[0] % WEIR_ARRAY_LEN(adjectives)],
                             nouns[bytes[1] % WEIR_ARRAY_LEN(nouns)],
                             (bytes[2] << 8 | bytes[3]) % 1000);
}

/* A UUID of version 7 without its dashes. */
char *mlflow_make_id(struct weir_arena *arena)
{
    char uuid[WEIR_UUID_BYTES], *id = weir_arena_alloc(arena, WEIR_UUID_BYTES);
    size_t n = 0;
    weir_uuid_make(uuid);
    for (const char *p = uuid; *p != '\0'; p++) {
        if (*p != '-') {
            id[n++] = *p;
        }
    }
    return id;
}

static const char *value_of(const struct weir_tag *tags, size_t n, const char *key)
{
    const char *value = NULL;
    for (size_t i = 0; i < n; i++) {
        value = strcmp(tags[i].key, key) == 0 ? tags[i].value : value;
    }
    return value;
}

static void publish(struct weir_mlflow_call *call, const struct weir_run *run)
{
    json_array_append_new(call->publish,
                          json_pack("[s,{s:s,s:s}]", "runs", "id", run->id, "status", run->status));
}

static weir_status answer_run(struct weir_mlflow_call *call, struct weir_txn *txn,
                              const struct mlflow_run *run, struct weir_error *err)
{
    struct weir_buf buf;
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"run\":");
    weir_status status = mlflow_put_run(call, txn, &buf, run, err);
    return mlflow_answer_made(call, status, &buf);
}

/* The name that is given, as argument or tag, or one that is made; the tags get it, too. */
static weir_status choose_name(struct weir_mlflow_call *call, struct weir_tag *tags, size_t *n_tags,
                               char **out, struct weir_error *err)
{
    const char *given, *tagged = value_of(tags, *n_tags, TAG_NAME);
    WEIR_TRY(mlflow_text(call, "run_name", &given, err));
    given = given != NULL && *given != '\0' ? given : NULL;
    if (given != NULL && tagged != NULL && strcmp(given, tagged) != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "Both 'run_name' argument and 'mlflow.runName' tag are specified, "
                              "but with different values (run_name='%.100s', "
                              "mlflow.runName='%.100s').",
                              given, tagged);
    }
    *out = given != NULL                       ? (char *)given
           : tagged != NULL && *tagged != '\0' ? (char *)tagged
                                               : mlflow_make_name(call->arena);
    WEIR_TRY(mlflow_check_length("run_name", *out, NAME_MAX_CHARACTERS, err));
    if (tagged == NULL) {
        tags[(*n_tags)++] = (struct weir_tag){TAG_NAME, *out};
    }
    return WEIR_OK;
}

weir_status mlflow_target_experiment(struct weir_mlflow_call *call, struct weir_txn *txn,
                                     struct weir_experiment *out, struct weir_error *err)
{
    const char *id;
    WEIR_TRY(mlflow_text(call, "experiment_id", &id, err));
    WEIR_TRY(mlflow_find_experiment(call, txn, id != NULL && *id != '\0' ? id : "0", out, err));
    return out->deleted_ms == 0 ? WEIR_OK
                                : weir_error_set(err, WEIR_ERR_INVALID,
                                                 "The experiment %lld must be in the 'active' "
                                                 "state. Current state is deleted.",
                                                 (long long)out->id);
}

static weir_status check_tags(struct weir_mlflow_call *call, struct weir_tag *tags, size_t n,
                              struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char *place = weir_arena_printf(call->arena, "tags[%zu].key", i);
        WEIR_TRY(mlflow_check_key(call->arena, place, tags[i].key, err));
        tags[i].value = mlflow_cut(call->arena, tags[i].value, MLFLOW_TAG_MAX);
    }
    return WEIR_OK;
}

weir_status mlflow_run_create(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct weir_experiment experiment;
    struct weir_tag *given, *tags;
    struct mlflow_run run = {0};
    const char *user;
    size_t n_tags;
    WEIR_TRY(mlflow_target_experiment(call, txn, &experiment, err));
    WEIR_TRY(mlflow_tags(call, "tags", &given, &n_tags, err));
    tags = WEIR_ARENA_ARRAY(call->arena, n_tags + 1, struct weir_tag);
    memcpy(tags, given, n_tags * sizeof *tags);
    WEIR_TRY(check_tags(call, tags, n_tags, err));
    WEIR_TRY(choose_name(call, tags, &n_tags, &run.record.name, err));
    WEIR_TRY(mlflow_text(call, "user_id", &user, err));
    user = user != NULL && *user != '\0' ? user : value_of(tags, n_tags, TAG_USER);
    WEIR_TRY(mlflow_int(call, "start_time", call->now_ms, &run.record.start_ms, err));
    run.record.id = mlflow_make_id(call->arena);
    run.record.project = experiment.project;
    run.record.experiment = experiment.id;
    run.record.kind = call->job != NULL ? "program" : "external";
    run.record.status = "RUNNING";
    run.record.job = (char *)call->job;
    run.record.user = mlflow_cut(call->arena, user != NULL ? user : call->actor, 256);
    run.record.created_by = (char *)call->actor;
    run.record.created_ms = call->now_ms;
    if (experiment.artifact_location != NULL) {
        run.record.artifact_root = weir_arena_printf(call->arena, "%s/%s/artifacts",
                                                     experiment.artifact_location, run.record.id);
    }
    WEIR_TRY(weir_run_insert(txn, &run.record, &run.number, err));
    WEIR_TRY(weir_run_tags_put(txn, run.number, tags, n_tags, err));
    publish(call, &run.record);
    return answer_run(call, txn, &run, err);
}

weir_status mlflow_run_get(struct weir_mlflow_call *call, struct weir_txn *txn,
                           struct weir_error *err)
{
    struct mlflow_run run;
    const char *id;
    WEIR_TRY(mlflow_run_id(call, &id, err));
    WEIR_TRY(mlflow_find_run(call, txn, id, &run, err));
    return answer_run(call, txn, &run, err);
}

static weir_status read_status(struct weir_mlflow_call *call, struct weir_run *run,
                               struct weir_error *err)
{
    /* Of the protocol's enumeration, whose numbers some clients send. */
    static const char *const known[] = {"RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"};
    const json_t *value = json_object_get(call->body, "status");
    if (value == NULL || json_is_null(value)) {
        return WEIR_OK;
    }
    for (size_t i = 0; i < WEIR_ARRAY_LEN(known); i++) {
        bool is_number = json_is_integer(value) && json_integer_value(value) == (json_int_t)i + 1;
        if (is_number ||
            (json_is_string(value) && strcmp(json_string_value(value), known[i]) == 0)) {
            run->status = (char *)known[i];
            run->finished_ms = i < 2 ? 0 : run->finished_ms;
            return WEIR_OK;
        }
    }
    return mlflow_invalid(call->arena, "status", value,
                          "expected RUNNING, SCHEDULED, FINISHED, FAILED or KILLED", err);
}

weir_status mlflow_run_update(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    struct mlflow_run run;
    const char *id, *name;
    struct weir_buf buf;
    WEIR_TRY(mlflow_run_id(call, &id, err));
    WEIR_TRY(mlflow_text(call, "run_name", &name, err));
    WEIR_TRY(mlflow_find_run_to_change(call, txn, id, false, &run, err));
    WEIR_TRY(read_status(call, &run.record, err));
    WEIR_TRY(mlflow_int(call, "end_time", run.record.finished_ms, &run.record.finished_ms, err));
    if (name != NULL && *name != '\0') {
        WEIR_TRY(mlflow_check_length("run_name", name, NAME_MAX_CHARACTERS, err));
        run.record.name = (char *)name;
        WEIR_TRY(
            weir_run_tags_put(txn, run.number, &(struct weir_tag){TAG_NAME, (char *)name}, 1, err));
    }
    WEIR_TRY(weir_txn_update(txn, &weir_run_resource, &run.record,
                             WEIR_FIELDS("name", "status", "finished_ms"), err));
    publish(call, &run.record);
    weir_buf_init(&buf, MLFLOW_ANSWER_MAX_BYTES);
    (void)weir_buf_puts(&buf, "{\"run_info\":");
    mlflow_put_run_info(&buf, &run.record);
    (void)weir_buf_puts(&buf, "}");
    mlflow_answer_buf(call, &buf);
    return WEIR_OK;
}

static weir_status set_deleted(struct weir_mlflow_call *call, struct weir_txn *txn,
                               int64_t deleted_ms, struct weir_error *err)
{
    struct mlflow_run run;
    const char *id;
    WEIR_TRY(mlflow_run_id(call, &id, err));
    WEIR_TRY(mlflow_find_run_to_change(call, txn, id, true, &run, err));
    run.record.deleted_ms = deleted_ms;
    WEIR_TRY(weir_txn_update(txn, &weir_run_resource, &run.record, WEIR_FIELDS("deleted_ms"), err));
    publish(call, &run.record);
    mlflow_answer_nothing(call);
    return WEIR_OK;
}

weir_status mlflow_run_delete(struct weir_mlflow_call *call, struct weir_txn *txn,
                              struct weir_error *err)
{
    return set_deleted(call, txn, call->now_ms, err);
}

weir_status mlflow_run_restore(struct weir_mlflow_call *call, struct weir_txn *txn,
                               struct weir_error *err)
{
    return set_deleted(call, txn, 0, err);
}
