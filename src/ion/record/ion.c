#include "ion/ion.h"

#include "base/json.h"
#include "base/uuid.h"
#include "ion/arms.h"
#include "ion/door.h"
#include "ion/firing.h"
#include "ion/revision.h"
#include "store/event.h"
#include "store/noun.h"
#include "store/stmt.h"
#include "store/table.h"

#include <string.h>

// clang-format off
static const struct weir_field ion_fields[] = {
    WEIR_FIELD(weir_ion, name,          TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Unique name"),
    WEIR_FIELD(weir_ion, project,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Project it belongs to"),
    WEIR_FIELD_HIDING(weir_ion, document, WEIR_FIELD_READ_ONLY, WEIR_ION_SECRETS, "", "What was applied; secrets are shown as ***"),
    WEIR_FIELD(weir_ion, state,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "ACTIVE or DELETED"),
    WEIR_FIELD(weir_ion, mode,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "production or sandbox"),
    WEIR_FIELD(weir_ion, revision,      INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Counts changes of the document"),
    WEIR_FIELD(weir_ion, list_revision, INT,  WEIR_FIELD_READ_ONLY, "", "Counts changes of the lists"),
    WEIR_FIELD(weir_ion, n_decisions,   INT,  WEIR_FIELD_READ_ONLY, "", "Policy decisions made"),
    WEIR_FIELD(weir_ion, n_firings,     INT,  WEIR_FIELD_READ_ONLY, "", "Firings of triggers"),
    WEIR_FIELD(weir_ion, n_served,      INT,  WEIR_FIELD_READ_ONLY, "", "Promotions and rollbacks made"),
    WEIR_FIELD(weir_ion, created_by,    TEXT, WEIR_FIELD_READ_ONLY, "", "Who applied it first"),
    WEIR_FIELD(weir_ion, created_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When"),
    WEIR_FIELD(weir_ion, updated_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "Last change of the document"),
};
static const struct weir_field pipeline_fields[] = {
    WEIR_FIELD(weir_ion_pipeline, id,                  TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:NAME"),
    WEIR_FIELD(weir_ion_pipeline, ion,                 TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_pipeline, name,                TEXT, WEIR_FIELD_READ_ONLY, "", "Name within the ION"),
    WEIR_FIELD(weir_ion_pipeline, type,                TEXT, WEIR_FIELD_READ_ONLY, "", "training, prediction, preparation, evaluation or comparison"),
    WEIR_FIELD(weir_ion_pipeline, state,               TEXT, WEIR_FIELD_READ_ONLY, "", "IDLE, TRAINING, RUNNING, FREEZING; WAITING, DEPLOYING, SERVING, DEPLOY_FAILED; REMOVED"),
    WEIR_FIELD(weir_ion_pipeline, state_reason,        TEXT, WEIR_FIELD_READ_ONLY, "", "Why the deployment failed, or who paused it; else, until it serves, why its job waits, restarts or failed"),
    WEIR_FIELD(weir_ion_pipeline, state_ms,            TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it is in this state"),
    WEIR_FIELD(weir_ion_pipeline, paused_by,           TEXT, WEIR_FIELD_READ_ONLY, "", "Who paused it: no run begins, replicas do not run"),
    WEIR_FIELD(weir_ion_pipeline, paused_ms,           TIME, WEIR_FIELD_READ_ONLY, "ms", "When they did"),
    WEIR_FIELD(weir_ion_pipeline, job,                 TEXT, WEIR_FIELD_READ_ONLY, "", "Job of the run or of the replicas"),
    WEIR_FIELD_AT(weir_ion_pipeline, run,                 runs.run,                 TEXT, WEIR_FIELD_READ_ONLY, "", "Run of the pipeline, while it runs"),
    WEIR_FIELD_AT(weir_ion_pipeline, training,            runs.training,            INT,  WEIR_FIELD_READ_ONLY, "", "Number of the running or last run"),
    WEIR_FIELD_AT(weir_ion_pipeline, started_ms,          runs.started_ms,          TIME, WEIR_FIELD_READ_ONLY, "ms", "When that was started"),
    WEIR_FIELD_AT(weir_ion_pipeline, cause,               runs.cause,               TEXT, WEIR_FIELD_READ_ONLY, "", "Why it runs or ran last"),
    WEIR_FIELD_AT(weir_ion_pipeline, cause_by,            runs.cause_by,            TEXT, WEIR_FIELD_READ_ONLY, "", "Who triggered it by hand"),
    WEIR_FIELD_AT(weir_ion_pipeline, pending_by,          runs.pending_by,          TEXT, WEIR_FIELD_READ_ONLY, "", "Who triggered the run after that by hand"),
    WEIR_FIELD_AT(weir_ion_pipeline, pending_cause,       runs.pending_cause,       TEXT, WEIR_FIELD_READ_ONLY, "", "Why it will run again after that"),
    WEIR_FIELD_AT(weir_ion_pipeline, runs_left,           runs.runs_left,           INT,  WEIR_FIELD_READ_ONLY, "", "Runs that follow this one, as a person asked for"),
    WEIR_FIELD_AT(weir_ion_pipeline, measured_model,      runs.measured_model,      TEXT, WEIR_FIELD_READ_ONLY, "", "Model that came last to be measured"),
    WEIR_FIELD_AT(weir_ion_pipeline, measured_version,    runs.measured_version,    INT,  WEIR_FIELD_READ_ONLY, "", "Its version; 0: none has come"),
    WEIR_FIELD(weir_ion_pipeline, n_failures,          INT,  WEIR_FIELD_READ_ONLY, "", "Runs, or replicas, that have failed in a row"),
    WEIR_FIELD(weir_ion_pipeline, restart_ms,          TIME, WEIR_FIELD_READ_ONLY, "ms", "When it starts again by its restart rule"),
    WEIR_FIELD_AT(weir_ion_pipeline, dataset_version,     runs.dataset_version,     INT,  WEIR_FIELD_READ_ONLY, "", "Latest version of its dataset seen"),
    WEIR_FIELD_AT(weir_ion_pipeline, next_fire_ms,        runs.next_fire_ms,        TIME, WEIR_FIELD_READ_ONLY, "ms", "When a schedule of it fires next"),
    WEIR_FIELD_AT(weir_ion_pipeline, candidate,           service.candidate,           TEXT, WEIR_FIELD_READ_ONLY, "", "Candidate that serves"),
    WEIR_FIELD_AT(weir_ion_pipeline, deployment_revision, service.deployment_revision, INT,  WEIR_FIELD_READ_ONLY, "", "Counts changes of what replicas must serve"),
    {.name = "deployment", .type = WEIR_FIELD_TYPE_JSON, .offset = offsetof(struct weir_ion_pipeline, service.deployment), .flags = WEIR_FIELD_READ_ONLY, .unit = "", .secrets = WEIR_DEPLOYMENT_SECRETS, .doc = "What replicas must serve; secrets are shown as ***"},
    WEIR_FIELD_AT(weir_ion_pipeline, served_revision,     service.served_revision,     INT,  WEIR_FIELD_READ_ONLY, "", "Newest deployment that a replica serves; 0: none"),
    WEIR_FIELD_AT(weir_ion_pipeline, served_candidate,    service.served_candidate,    TEXT, WEIR_FIELD_READ_ONLY, "", "Candidate that replicas serve"),
    WEIR_FIELD_AT(weir_ion_pipeline, last_frame_ms,       service.last_frame_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "When a replica took a frame last"),
    WEIR_FIELD_AT(weir_ion_pipeline, keep_pictures_ms,    service.keep_pictures_ms,    INT,  WEIR_FIELD_READ_ONLY, "ms", "How long its document has pictures of its decisions kept; 0: as its project; below 0: not at all"),
    WEIR_FIELD_AT(weir_ion_pipeline, gallery_version,     service.gallery.version,     INT,  WEIR_FIELD_READ_ONLY, "", "Version of the gallery's dataset"),
    WEIR_FIELD_AT(weir_ion_pipeline, gallery_path,        service.gallery.path,        TEXT, WEIR_FIELD_READ_ONLY, "", "Its folder"),
    WEIR_FIELD_AT(weir_ion_pipeline, gallery_digest,      service.gallery.digest,      TEXT, WEIR_FIELD_READ_ONLY, "", "Its digest"),
    WEIR_FIELD_AT(weir_ion_pipeline, gallery_blob,        service.gallery.blob,        TEXT, WEIR_FIELD_READ_ONLY, "", "Its manifest"),
    WEIR_FIELD_AT(weir_ion_pipeline, impostors_version,   service.impostors.version,   INT,  WEIR_FIELD_READ_ONLY, "", "Version of the impostors' dataset"),
    WEIR_FIELD_AT(weir_ion_pipeline, impostors_path,      service.impostors.path,      TEXT, WEIR_FIELD_READ_ONLY, "", "Its folder"),
    WEIR_FIELD_AT(weir_ion_pipeline, impostors_digest,    service.impostors.digest,    TEXT, WEIR_FIELD_READ_ONLY, "", "Its digest"),
    WEIR_FIELD_AT(weir_ion_pipeline, impostors_blob,      service.impostors.blob,      TEXT, WEIR_FIELD_READ_ONLY, "", "Its manifest"),
    WEIR_FIELD_AT(weir_ion_pipeline, detector_model,      service.detector.model,      TEXT, WEIR_FIELD_READ_ONLY, "", "Model that its stages find with"),
    WEIR_FIELD_AT(weir_ion_pipeline, detector_version,    service.detector.version,    INT,  WEIR_FIELD_READ_ONLY, "", "Version of that; 0: there is none yet"),
    WEIR_FIELD_AT(weir_ion_pipeline, detector_id,         service.detector.id,         TEXT, WEIR_FIELD_READ_ONLY, "", "Its identifier"),
    WEIR_FIELD_AT(weir_ion_pipeline, detector_blob,       service.detector.blob,       TEXT, WEIR_FIELD_READ_ONLY, "", "Its file"),
    {.name = "threshold", .type = WEIR_FIELD_TYPE_RECORD, .offset = offsetof(struct weir_ion_pipeline, service.threshold), .flags = WEIR_FIELD_READ_ONLY, .unit = "", .of = &weir_threshold_resource, .doc = "How a replica set the threshold last"},
    WEIR_FIELD(weir_ion_pipeline, updated_ms,          TIME, WEIR_FIELD_READ_ONLY, "ms", "Last change"),
};
static const struct weir_field candidate_fields[] = {
    WEIR_FIELD(weir_ion_candidate, id,            TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:LINK:MODEL-VERSION"),
    WEIR_FIELD(weir_ion_candidate, ion,           TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_candidate, link,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Link, FROM:TO"),
    WEIR_FIELD(weir_ion_candidate, model,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Model"),
    WEIR_FIELD(weir_ion_candidate, model_version, TEXT, WEIR_FIELD_READ_ONLY, "", "Identifier of the model version"),
    WEIR_FIELD(weir_ion_candidate, version,       INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number of the model version"),
    WEIR_FIELD(weir_ion_candidate, blob,          TEXT, WEIR_FIELD_READ_ONLY, "", "SHA-256 of the model file"),
    WEIR_FIELD(weir_ion_candidate, metrics,       JSON, WEIR_FIELD_READ_ONLY, "", "Measured quality"),
    WEIR_FIELD(weir_ion_candidate, interface,     JSON, WEIR_FIELD_READ_ONLY, "", "What it takes and gives: inputs, outputs, classes"),
    WEIR_FIELD(weir_ion_candidate, state,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "PENDING_REVIEW, WAITING, APPROVED, SHADOW, CANARY, AB, DEPLOYING, SERVING, DEPLOY_FAILED, PAUSED, RETIRED, REJECTED or ROLLED_BACK"),
    WEIR_FIELD(weir_ion_candidate, position,      INT,  WEIR_FIELD_READ_ONLY, "", "Policy of the link's chain where it stands or stood last, from 0"),
    WEIR_FIELD(weir_ion_candidate, position_ms,   TIME, WEIR_FIELD_READ_ONLY, "ms", "Since when it stands there"),
    WEIR_FIELD(weir_ion_candidate, until_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When that policy is asked again"),
    WEIR_FIELD(weir_ion_candidate, waits_for,     TEXT, WEIR_FIELD_READ_ONLY, "", "That policy, while it waits"),
    WEIR_FIELD(weir_ion_candidate, waits_why,     TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "What it waits for, in words"),
    WEIR_FIELD_RECORDS(weir_ion_candidate, approvals, weir_policy_approval_resource, WEIR_FIELD_READ_ONLY, "Who has approved it there"),
    WEIR_FIELD(weir_ion_candidate, share_ppm,     INT,  WEIR_FIELD_READ_ONLY, "", "Share of the deployment's requests that it is to answer while it is tried, in millionths"),
    WEIR_FIELD(weir_ion_candidate, is_mirrored,   BOOL, WEIR_FIELD_READ_ONLY, "", "Its answers are compared with those of the version that serves"),
    WEIR_FIELD(weir_ion_candidate, step,          INT,  WEIR_FIELD_READ_ONLY, "", "Step of the trial, from 0"),
    WEIR_FIELD(weir_ion_candidate, step_ms,       TIME, WEIR_FIELD_READ_ONLY, "ms", "When that step was asked for"),
    WEIR_FIELD(weir_ion_candidate, begun_ms,      TIME, WEIR_FIELD_READ_ONLY, "ms", "When it came into effect"),
    WEIR_FIELD(weir_ion_candidate, blocked,       TEXT, WEIR_FIELD_READ_ONLY, "", "Why its policy cannot judge it, as far as can be seen so far"),
    WEIR_FIELD_RECORD(weir_ion_candidate, base, weir_ion_figures_resource, WEIR_FIELD_READ_ONLY, "The deployment's figures at that time"),
    WEIR_FIELD_RECORD(weir_ion_candidate, evaluation, weir_policy_evaluation_resource, WEIR_FIELD_READ_ONLY, "How it is measured for the policy where it stands"),
    WEIR_FIELD(weir_ion_candidate, made_by,       TEXT, WEIR_FIELD_READ_ONLY, "", "Who triggered its training by hand, or registered it"),
    WEIR_FIELD(weir_ion_candidate, served_seq,    INT,  WEIR_FIELD_READ_ONLY, "", "Order of serving; 0 = never"),
    WEIR_FIELD(weir_ion_candidate, served_ms,     TIME, WEIR_FIELD_READ_ONLY, "ms", "When it began to serve"),
    WEIR_FIELD(weir_ion_candidate, created_ms,    TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "ms", "When it came to the link"),
    WEIR_FIELD(weir_ion_candidate, updated_ms,    TIME, WEIR_FIELD_READ_ONLY, "ms", "Last change of its state"),
};
static const struct weir_field policy_decision_fields[] = {
    WEIR_FIELD(weir_policy_decision, id,            TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:NUMBER"),
    WEIR_FIELD(weir_policy_decision, ion,           TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_policy_decision, link,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Link, FROM:TO"),
    WEIR_FIELD(weir_policy_decision, candidate,     TEXT, WEIR_FIELD_READ_ONLY, "", "Candidate"),
    WEIR_FIELD(weir_policy_decision, model_version, TEXT, WEIR_FIELD_READ_ONLY, "", "Identifier of the model version"),
    WEIR_FIELD(weir_policy_decision, version,       INT,  WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Number of the model version"),
    WEIR_FIELD(weir_policy_decision, policy,        TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Policy of the link's chain; none: no policy was asked"),
    WEIR_FIELD(weir_policy_decision, position,      INT,  WEIR_FIELD_READ_ONLY, "", "Its place in the chain, from 0"),
    WEIR_FIELD(weir_policy_decision, inputs,        JSON, WEIR_FIELD_READ_ONLY, "", "What the rule looked at"),
    WEIR_FIELD(weir_policy_decision, rule,          TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_LAST, "", "Rule, in words"),
    WEIR_FIELD(weir_policy_decision, verdict,       TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "pass, promote, wait, skip, reject, rollback or set"),
    WEIR_FIELD(weir_policy_decision, actor,         TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "User, or policy"),
    WEIR_FIELD(weir_policy_decision, note,          TEXT, WEIR_FIELD_READ_ONLY, "", "What the user said"),
    WEIR_FIELD(weir_policy_decision, time_ms,       TIME, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN | WEIR_FIELD_FIRST, "ms", "When"),
};
static const struct weir_field member_fields[] = {
    WEIR_FIELD(weir_ion_member, id,      TEXT, WEIR_FIELD_KEY | WEIR_FIELD_READ_ONLY, "", "ION:PERSON"),
    WEIR_FIELD(weir_ion_member, ion,     TEXT, WEIR_FIELD_READ_ONLY, "", "ION"),
    WEIR_FIELD(weir_ion_member, person,  TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Person, as in the gallery"),
    WEIR_FIELD(weir_ion_member, list,    TEXT, WEIR_FIELD_REQUIRED | WEIR_FIELD_COLUMN, "", "allow or deny"),
    WEIR_FIELD(weir_ion_member, actor,   TEXT, WEIR_FIELD_READ_ONLY | WEIR_FIELD_COLUMN, "", "Who put them there"),
    WEIR_FIELD(weir_ion_member, time_ms, TIME, WEIR_FIELD_READ_ONLY, "ms", "When"),
};
// clang-format on

const struct weir_resource weir_ion_resource = WEIR_RESOURCE("ION", "ions", weir_ion, ion_fields);
const struct weir_resource weir_ion_pipeline_resource =
    WEIR_RESOURCE("pipeline", "ion_pipelines", weir_ion_pipeline, pipeline_fields);
const struct weir_resource weir_ion_candidate_resource =
    WEIR_RESOURCE("candidate", "ion_candidates", weir_ion_candidate, candidate_fields);
const struct weir_resource weir_policy_decision_resource = WEIR_RESOURCE(
    "policy decision", "policy_decisions", weir_policy_decision, policy_decision_fields);
const struct weir_resource weir_ion_member_resource =
    WEIR_RESOURCE("member", "ion_members", weir_ion_member, member_fields);

const struct weir_noun weir_noun_ion = {
    "ions", .project = "project", WEIR_SUBJECT(ion, name), .stays = "until it is deleted",
    .captured = WEIR_CAPTURED("ion", 10, .resource = &weir_ion_resource, .by = "name",
                              .since_always = true)};

const struct weir_noun weir_noun_ion_pipeline = {
    "ion_pipelines", WEIR_OF(ion, ions, name), .stays = "of a document",
    .captured = WEIR_CAPTURED("pipelines", 30, .resource = &weir_ion_pipeline_resource, .by = "ion",
                              .since_always = true)};

const struct weir_noun weir_noun_ion_candidate = {
    "ion_candidates", WEIR_OF(ion, ions, name), .stays = "of a version and a link",
    .captured = WEIR_CAPTURED("candidates", 40, .resource = &weir_ion_candidate_resource,
                              .by = "ion", .time = "created_ms", .since_always = true)};

const struct weir_noun weir_noun_ion_member = {
    "ion_members", WEIR_OF(ion, ions, name), .stays = "of a document",
    .captured = WEIR_CAPTURED("members", 50, .resource = &weir_ion_member_resource, .by = "ion",
                              .since_always = true),
    .forgets = WEIR_FORGETS(.frozen_goes = "person")};

const struct weir_noun weir_noun_policy_decision = {
    "policy_decisions", WEIR_OF(ion, ions, name),
    .rules = {WEIR_RULE(
        "policy-decisions", "What policies decided about models",
        "The oldest go first, but none about a model that serves or waits.", 130,
        {WEIR_DAYS(730), WEIR_MB(50)}, 900, 5, .is_of_project = true, .time = "time_ms",
        .may = "candidate NOT IN (SELECT id FROM ion_candidates WHERE " WEIR_CANDIDATE_IN_USE_SQL
               ")")},
    .captured = WEIR_CAPTURED("policy-decisions", 70, .resource = &weir_policy_decision_resource,
                              .by = "ion", .time = "time_ms", .since_always = true)};

static const char sql_active[] = "SELECT name FROM ions WHERE state = 'ACTIVE' ORDER BY name";
static const char sql_sandbox[] =
    "SELECT count(*) FROM ions WHERE name = :name AND mode = '" WEIR_ION_SANDBOX "'";
static const char sql_abandon[] =
    "UPDATE ions SET state = 'DELETED', updated_ms = :now WHERE name = :name AND state = 'ACTIVE'";
static const char sql_lists_changed[] =
    "UPDATE ions SET list_revision = list_revision + 1 WHERE name = :name";
static const char sql_same_list[] =
    "SELECT count(*) FROM ion_members WHERE id = :id AND list = :list";

void weir_ion_state_new(const char *name, struct weir_arena *arena, struct weir_ion_state *out)
{
    *out = (struct weir_ion_state){.ion = {.name = weir_arena_strdup(arena, name)}};
}

/** All records of an ION. */
static weir_status load_all(struct weir_txn *txn, const struct weir_resource *resource,
                            const char *ion, const char *order_by, struct weir_arena *arena,
                            void **out, size_t *out_n, struct weir_error *err)
{
    const struct weir_query query = {WEIR_FILTERS(WEIR_FILTER_TEXT("ion", EQ, ion)),
                                     .order_by = order_by, .limit = WEIR_QUERY_LIMIT_MAX};
    return weir_txn_list(txn, resource, &query, arena, out, out_n, NULL, err);
}

weir_status weir_ion_load_doc(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                              struct weir_ion *out_ion, struct weir_ion_doc *out,
                              struct weir_error *err)
{
    json_t *document = NULL;
    WEIR_TRY(weir_txn_get(txn, &weir_ion_resource, name, arena, out_ion, err));
    const char *text = out_ion->document != NULL ? out_ion->document : "";
    struct weir_error reason;
    weir_status status = weir_json_parse(text, strlen(text), name, &document, &reason);
    if (status == WEIR_OK) {
        status = weir_ion_doc_parse(document, arena, out, &reason);
    }
    json_decref(document);
    return status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT, "the stored document of ION \"%s\": %s",
                                name, reason.message);
}

weir_status weir_ion_load(struct weir_txn *txn, const char *name, struct weir_arena *arena,
                          struct weir_ion_state *out, struct weir_error *err)
{
    struct weir_ion_state state = {0};
    void *pipelines, *candidates, *members, *lock_downs, *replicas, *triggers;
    WEIR_TRY(weir_ion_load_doc(txn, name, arena, &state.ion, &state.doc, err));
    WEIR_TRY(load_all(txn, &weir_ion_pipeline_resource, name, NULL, arena, &pipelines,
                      &state.n_pipelines, err));
    WEIR_TRY(load_all(txn, &weir_ion_candidate_resource, name, "created_ms", arena, &candidates,
                      &state.n_candidates, err));
    WEIR_TRY(load_all(txn, &weir_ion_member_resource, name, "person", arena, &members,
                      &state.n_members, err));
    WEIR_TRY(load_all(txn, &weir_ion_lock_down_resource, name, "door", arena, &lock_downs,
                      &state.n_lock_downs, err));
    WEIR_TRY(load_all(txn, &weir_ion_replica_resource, name, NULL, arena, &replicas,
                      &state.n_replicas, err));
    WEIR_TRY(load_all(txn, &weir_ion_trigger_resource, name, NULL, arena, &triggers,
                      &state.n_triggers, err));
    state.pipelines = pipelines;
    state.triggers = triggers;
    state.candidates = candidates;
    state.members = members;
    state.lock_downs = lock_downs;
    state.replicas = replicas;
    *out = state;
    return WEIR_OK;
}

/** Those that the step changed; who serves last, since the database allows one per link. */
static weir_status save_candidates(struct weir_txn *txn, const struct weir_ion_state *state,
                                   int64_t now_ms, struct weir_error *err)
{
    for (int serving = 0; serving <= 1; serving++) {
        for (size_t i = 0; i < state->n_candidates; i++) {
            const struct weir_ion_candidate *candidate = &state->candidates[i];
            bool is_serving = strcmp(candidate->state, WEIR_CANDIDATE_SERVING) == 0;
            if (candidate->updated_ms == now_ms && is_serving == (serving == 1)) {
                WEIR_TRY(weir_txn_upsert(txn, &weir_ion_candidate_resource, candidate, err));
            }
        }
    }
    return WEIR_OK;
}

/** Actions that are done after the transaction, by the outbox. */
static const char *const outbox_kinds[] = {
    [WEIR_ION_ACTION_START_TRAINING] = "start_training",
    [WEIR_ION_ACTION_STOP_TRAINING] = "stop_training",
    [WEIR_ION_ACTION_START_PREDICTION] = "start_prediction",
    [WEIR_ION_ACTION_STOP_PREDICTION] = "stop_prediction",
    [WEIR_ION_ACTION_START_EVALUATION] = "start_evaluation",
    [WEIR_ION_ACTION_STOP_EVALUATION] = "stop_evaluation",
    [WEIR_ION_ACTION_SHIFT] = "shift_deployment",
};

static weir_status save_outbox(struct weir_txn *txn, const struct weir_ion_state *state,
                               const struct weir_ion_action *action, const char *kind,
                               struct weir_arena *arena, int64_t now_ms, struct weir_error *err)
{
    bool is_start = action->type == WEIR_ION_ACTION_START_TRAINING;
    json_t *payload = json_pack("{s:s,s:s,s:I,s:s?,s:s?}", "ion", state->ion.name, "pipeline",
                                action->pipeline, "training", (json_int_t)action->number, "job",
                                action->job, "cause", is_start ? action->message : NULL);
    if (payload != NULL && action->deployment != NULL) {
        const struct weir_ion_wanted *wanted = &action->wanted;
        json_object_set_new(payload, "deployment", json_string(action->deployment));
        json_object_set_new(payload, "model", json_string(wanted->model));
        json_object_set_new(payload, "serving", json_integer(wanted->serving));
        json_object_set_new(payload, "trial", json_integer(wanted->trial));
    }
    if (payload == NULL) {
        return weir_error_set(err, WEIR_ERR_INTERNAL, "action %s: its text is not UTF-8",
                              action->key);
    }
    char *text = weir_json_text(payload, arena);
    json_decref(payload);
    return weir_outbox_add(txn, action->key, kind, text, now_ms, now_ms, err);
}

static weir_status save_action(struct weir_txn *txn, const struct weir_ion_state *state,
                               const struct weir_ion_action *action, struct weir_arena *arena,
                               int64_t now_ms, struct weir_error *err)
{
    char *subject = weir_arena_printf(arena, "ion/%s", state->ion.name);
    if (action->type < WEIR_ARRAY_LEN(outbox_kinds) && outbox_kinds[action->type] != NULL) {
        return save_outbox(txn, state, action, outbox_kinds[action->type], arena, now_ms, err);
    }
    switch (action->type) {
    case WEIR_ION_ACTION_DEPLOYED:
        return WEIR_OK; /* It is in the pipeline's record. */
    case WEIR_ION_ACTION_DECIDED:
        return weir_txn_insert(txn, &weir_policy_decision_resource, &action->decision, err);
    case WEIR_ION_ACTION_FIRED:
        return weir_firing_store(txn, &action->firing, err);
    case WEIR_ION_ACTION_EVENT: {
        const struct weir_event event = {.time_ms = now_ms,
                                         .topic = "ions",
                                         .kind = (char *)action->kind,
                                         .subject = subject,
                                         .actor = (char *)action->actor,
                                         .message = (char *)action->message};
        return weir_event_append(txn, &event, NULL, err);
    }
    case WEIR_ION_ACTION_ALERT: {
        char id[WEIR_UUID_BYTES];
        weir_uuid_make(id);
        const struct weir_alert alert = {.id = id,
                                         .key = (char *)action->key,
                                         .severity = (char *)action->severity,
                                         .kind = (char *)action->kind,
                                         .subject = subject,
                                         .message = (char *)action->message};
        return weir_alert_raise(txn, &alert, now_ms, NULL, err);
    }
    case WEIR_ION_ACTION_RESOLVE:
        return weir_alert_resolve(txn, action->key, now_ms, err);
    default:
        break;
    }
    return weir_error_set(err, WEIR_ERR_INTERNAL, "unknown action %d", (int)action->type);
}

/** One that no document has any more goes; it may never have been stored. */
static weir_status save_trigger(struct weir_txn *txn, const struct weir_ion_trigger *trigger,
                                int64_t now_ms, struct weir_error *err)
{
    if (trigger->updated_ms != now_ms) {
        return WEIR_OK;
    }
    if (strcmp(trigger->state, "REMOVED") != 0) {
        return weir_txn_upsert(txn, &weir_ion_trigger_resource, trigger, err);
    }
    weir_status status = weir_txn_delete(txn, &weir_ion_trigger_resource, trigger->id, err);
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

weir_status weir_ion_save(struct weir_txn *txn, const struct weir_ion_state *state,
                          const struct weir_ion_actions *actions, int64_t now_ms,
                          struct weir_error *err)
{
    WEIR_TRY(weir_txn_upsert(txn, &weir_ion_resource, &state->ion, err));
    WEIR_TRY(weir_ion_revision_keep(txn, state, actions, now_ms, err));
    for (size_t i = 0; i < state->n_pipelines; i++) {
        WEIR_TRY(weir_txn_upsert(txn, &weir_ion_pipeline_resource, &state->pipelines[i], err));
    }
    WEIR_TRY(save_candidates(txn, state, now_ms, err));
    for (size_t i = 0; i < state->n_triggers; i++) {
        WEIR_TRY(save_trigger(txn, &state->triggers[i], now_ms, err));
    }
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < actions->n && status == WEIR_OK; i++) {
        status = save_action(txn, state, &actions->items[i], &arena, now_ms, err);
    }
    if (status == WEIR_OK) {
        status = weir_ion_arms_follow(txn, state, &arena, err);
    }
    weir_arena_fini(&arena);
    return status;
}

/** Change the row; *out_changed says whether there was something to change. */
static weir_status change_member(struct weir_txn *txn, const struct weir_ion_member *member,
                                 bool *out_changed, struct weir_error *err)
{
    if (member->list == NULL) {
        weir_status status = weir_txn_delete(txn, &weir_ion_member_resource, member->id, err);
        *out_changed = status == WEIR_OK;
        return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
    }
    int64_t n_same;
    WEIR_TRY(weir_txn_query_int(
        txn, sql_same_list,
        WEIR_BINDS(WEIR_BIND_TEXT("id", member->id), WEIR_BIND_TEXT("list", member->list)), 0,
        &n_same, err));
    *out_changed = n_same == 0;
    return n_same == 0 ? weir_txn_upsert(txn, &weir_ion_member_resource, member, err) : WEIR_OK;
}

weir_status weir_ion_member_set(struct weir_txn *txn, const char *ion, const char *person,
                                const char *list, const char *actor, int64_t now_ms,
                                bool *out_changed, struct weir_error *err)
{
    struct weir_arena arena;
    weir_arena_init(&arena, 0);
    const struct weir_ion_member member = {.id = weir_arena_printf(&arena, "%s:%s", ion, person),
                                           .ion = (char *)ion,
                                           .person = (char *)person,
                                           .list = (char *)list,
                                           .actor = (char *)actor,
                                           .time_ms = now_ms};
    bool has_changed = false;
    weir_status status = change_member(txn, &member, &has_changed, err);
    weir_arena_fini(&arena);
    WEIR_TRY(status);
    if (has_changed) {
        WEIR_TRY(weir_txn_exec(txn, sql_lists_changed, WEIR_BINDS(WEIR_BIND_TEXT("name", ion)),
                               NULL, err));
    }
    *out_changed = has_changed;
    return WEIR_OK;
}

weir_status weir_ion_abandon(struct weir_txn *txn, const char *name, int64_t now_ms,
                             struct weir_error *err)
{
    int64_t n_changed;
    WEIR_TRY(weir_txn_exec(txn, sql_abandon,
                           WEIR_BINDS(WEIR_BIND_INT("now", now_ms), WEIR_BIND_TEXT("name", name)),
                           &n_changed, err));
    return n_changed > 0 ? WEIR_OK
                         : weir_error_set(err, WEIR_ERR_NOT_FOUND, "there is no ION \"%s\"", name);
}

weir_status weir_ion_is_sandbox(struct weir_txn *txn, const char *subject, bool *out,
                                struct weir_error *err)
{
    const char *name = subject != NULL && strncmp(subject, "ion/", 4) == 0 ? subject + 4 : "";
    char text[WEIR_FIELD_NAME_MAX_BYTES + 1];
    int64_t n = 0;
    size_t len = strcspn(name, "/");
    *out = false;
    if (len == 0 || len >= sizeof text) {
        return WEIR_OK;
    }
    memcpy(text, name, len);
    text[len] = '\0';
    WEIR_TRY(
        weir_txn_query_int(txn, sql_sandbox, WEIR_BINDS(WEIR_BIND_TEXT("name", text)), 0, &n, err));
    *out = n > 0;
    return WEIR_OK;
}

weir_status weir_ion_list_active(struct weir_txn *txn, struct weir_arena *arena, char ***out_names,
                                 size_t *out_n, struct weir_error *err)
{
    return weir_txn_query_texts(txn, sql_active, WEIR_NO_BINDS, arena, out_names, out_n, err);
}
