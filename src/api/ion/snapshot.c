/** Snapshots of IONs: taken, listed, sent out, taken in; what they show. */
#include "api/core/answer.h"
#include "api/core/args.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "api/ion/ion.h"
#include "control/control.h"
#include "store/table.h"

#include "capture/replay.h"
#include "capture/rows.h"
#include "capture/snapshot.h"
#include "capture/state.h"
#include "ion/old_words.h"
#include "ion/revision.h"

#include <string.h>

static struct weir_capture capture_of(const struct api_call *call)
{
    return (struct weir_capture){.state_dir = call->api->state_dir, .blobs = call->api->blobs};
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* A time of the body or 0. */
static weir_status body_time(const struct api_call *call, const char *name, int64_t *out,
                             struct weir_error *err)
{
    const char *text;
    WEIR_TRY(api_body_text(call, name, &text, err));
    *out = 0;
    if (text != NULL && weir_time_parse(text, out) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.%s: expected a time like 2026-01-31T12:00:00Z", name);
    }
    return WEIR_OK;
}

struct making {
    struct api_call *call;
    struct weir_capture capture;
    struct weir_snapshot_wanted wanted;
    struct weir_snapshot_taking *taking;
    struct weir_snapshot made;
    const char *kind;    /* of the event */
    const char *project; /* of one that is imported */
};

static weir_status take_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct making *making = context;
    struct weir_snapshot existing;
    /* Before all the work; the insertion decides. */
    weir_status status = weir_txn_get(txn, &weir_snapshot_resource, making->wanted.name,
                                      making->call->arena, &existing, err);
    if (status == WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_EXISTS,
                              "there is a snapshot \"%s\" already: take another name",
                              making->wanted.name);
    }
    return status == WEIR_ERR_NOT_FOUND
               ? weir_snapshot_take(txn, &making->capture, &making->wanted, making->call->arena,
                                    &making->taking, err)
               : status;
}

static weir_status keep_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct making *making = context;
    struct control control = api_control(making->call);
    const struct weir_snapshot *made = &making->made;
    struct weir_arena *arena = making->call->arena;
    struct weir_ion ion;
    weir_status found = weir_txn_get(txn, &weir_ion_resource, made->ion, arena, &ion, err);
    bool is_here = found == WEIR_OK;
    if (!is_here && found != WEIR_ERR_NOT_FOUND) {
        return found;
    }
    WEIR_TRY(weir_txn_insert(txn, &weir_snapshot_resource, made, err));
    return control_log(&control, txn, "ions", making->kind,
                       is_here && !made->is_imported
                           ? weir_arena_printf(arena, "ion/%s", made->ion)
                           : weir_arena_printf(arena, "project/%s", made->project),
                       weir_arena_printf(arena, "Snapshot %s of ION %s %s.", made->name, made->ion,
                                         made->is_imported ? "was imported" : "was taken"),
                       err);
}

static weir_status keep(struct making *making, struct weir_error *err)
{
    weir_status status = api_write(making->call, keep_in, making, err);
    if (status != WEIR_OK) {
        weir_snapshot_discard(&making->capture, making->made.id);
        return status;
    }
    api_answer_record(making->call, &weir_snapshot_resource, &making->made);
    return WEIR_OK;
}

/* One at a time: each reads and writes much, on a thread that answers requests. */
static weir_status alone(struct making *making,
                         weir_status (*make)(struct making *, struct weir_error *),
                         struct weir_error *err)
{
    struct weir_api *api = making->call->api;
    if (atomic_flag_test_and_set(&api->makes_snapshot)) {
        return weir_error_set(err, WEIR_ERR_UNAVAILABLE,
                              "another snapshot is being made: try again in a moment");
    }
    weir_status status = make(making, err);
    atomic_flag_clear(&api->makes_snapshot);
    return status == WEIR_OK ? keep(making, err) : status;
}

static weir_status take(struct making *making, struct weir_error *err)
{
    WEIR_TRY(api_read(making->call, take_in, making, err));
    return weir_snapshot_seal(making->taking, &making->made, err);
}

weir_status api_snapshot_take(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"name", "ion", "from", "to", "models", NULL};
    struct making making = {.call = call, .capture = capture_of(call), .kind = "snapshot_taken"};
    struct weir_snapshot_wanted *wanted = &making.wanted;
    (void)txn;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_body_text(call, "name", &wanted->name, err));
    WEIR_TRY(api_body_text(call, "ion", &wanted->ion, err));
    WEIR_TRY(body_time(call, "from", &wanted->from_ms, err));
    WEIR_TRY(body_time(call, "to", &wanted->to_ms, err));
    WEIR_TRY(api_body_bool(call, "models", false, &wanted->with_models, err));
    if (wanted->ion == NULL || wanted->name == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              wanted->ion == NULL ? "$.ion: missing (of which ION)"
                                                  : "$.name: missing (what to call it)");
    }
    wanted->actor = call->actor;
    wanted->now_ms = call->now_ms;
    return alone(&making, take, err);
}

/* Whose it is to be: a project that is there, and in which the caller may do this. */
static weir_status find_project(struct weir_txn *txn, void *context, struct weir_error *err)
{
    const struct making *making = context;
    struct weir_project project;
    return weir_txn_get(txn, &weir_project_resource, making->project, making->call->arena, &project,
                        err);
}

static weir_status import(struct making *making, struct weir_error *err)
{
    struct api_call *call = making->call;
    const char *project = api_query_text(call, "project");
    if (project == NULL) {
        project =
            !call->rows.is_all && call->rows.n_projects == 1 ? call->rows.projects[0] : "default";
    }
    making->project = project;
    WEIR_TRY(api_read(call, find_project, making, err));
    return weir_snapshot_import(&making->capture, call->request->body_file,
                                api_query_text(call, "name"), project, call->actor, call->now_ms,
                                call->arena, &making->made, err);
}

weir_status api_snapshot_import(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct making making = {.call = call, .capture = capture_of(call), .kind = "snapshot_imported"};
    (void)txn;
    if (call->request->body_file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "the body is empty: send the tar that export gave");
    }
    return alone(&making, import, err);
}

/* ---- looking --------------------------------------------------------------------------------- */

/* What a snapshot holds is read by who may read it where it came from. */
static weir_status check_reads(const struct api_call *call, const struct weir_snapshot *snapshot,
                               const enum weir_right *rights, size_t n, struct weir_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct weir_row_scope may = api_projects_with(call, rights[i]);
        if (!weir_row_scope_sees(&may, snapshot->project)) {
            return weir_error_set(err, WEIR_ERR_DENIED,
                                  "snapshot \"%s\" holds %s of project %.63s: reading them in it "
                                  "needs the right to %s %s there",
                                  snapshot->name, weir_right_noun(rights[i]), snapshot->project,
                                  weir_right_verb(rights[i]), weir_right_noun(rights[i]));
        }
    }
    return WEIR_OK;
}

/* A state and a replay tell what was decided, and by which versions. */
static const enum weir_right shown[] = {WEIR_RIGHT_DECISIONS_READ, WEIR_RIGHT_MODELS_LOOK};

static const enum weir_right exported[] = {WEIR_RIGHT_DECISIONS_READ, WEIR_RIGHT_RUNS_READ,
                                           WEIR_RIGHT_MODELS_READ,    WEIR_RIGHT_EVENTS_READ,
                                           WEIR_RIGHT_HEALTH_READ,    WEIR_RIGHT_BLOBS_READ};

static weir_status open_file(struct api_call *call, struct weir_txn *txn,
                             struct weir_snapshot *out_snapshot, struct weir_snapshot_file **out,
                             struct weir_error *err)
{
    const struct weir_capture capture = capture_of(call);
    WEIR_TRY(weir_txn_get(txn, &weir_snapshot_resource, call->params[0], call->arena, out_snapshot,
                          err));
    weir_status status = weir_snapshot_open(
        weir_snapshot_path(&capture, out_snapshot->id, call->arena), call->arena, out, err);
    return status == WEIR_ERR_NOT_FOUND
               ? weir_error_set(err, WEIR_ERR_CORRUPT, "the file of snapshot \"%s\" is gone",
                                out_snapshot->name)
               : status;
}

weir_status api_snapshot_get(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_snapshot snapshot;
    struct weir_snapshot_file *file;
    WEIR_TRY(open_file(call, txn, &snapshot, &file, err));
    const json_t *manifest = weir_snapshot_manifest(file);
    json_t *view = weir_record_to_json(&weir_snapshot_resource, &snapshot);
    json_object_set(view, "rows", json_object_get(manifest, "rows"));
    json_object_set(view, "files", json_object_get(manifest, "files"));
    weir_snapshot_close(file);
    api_answer(call, view);
    return WEIR_OK;
}

/* The file alone: reading it takes long, and needs no transaction. */
struct opening {
    struct api_call *call;
    struct weir_snapshot snapshot;
    struct weir_snapshot_file *file;
};

static weir_status open_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct opening *opening = context;
    struct api_call *call = opening->call;
    WEIR_TRY(weir_txn_get(txn, &weir_snapshot_resource, call->params[0], call->arena,
                          &opening->snapshot, err));
    WEIR_TRY(check_reads(call, &opening->snapshot, shown, WEIR_ARRAY_LEN(shown), err));
    return open_file(call, txn, &opening->snapshot, &opening->file, err);
}

weir_status api_snapshot_state(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct opening opening = {.call = call};
    int64_t n_points = api_query_int(call, "points");
    json_t *view, *course = NULL;
    (void)txn;
    WEIR_TRY(api_read(call, open_in, &opening, err));
    int64_t time_ms = api_query_time(call, "time", opening.snapshot.to_ms);
    weir_status status = WEIR_OK;
    if (n_points > 0) {
        status = weir_snapshot_course(opening.file, (size_t)n_points, call->arena, &course, err);
    }
    if (status == WEIR_OK) {
        status = weir_snapshot_state(opening.file, time_ms, call->arena, &view, err);
    }
    weir_snapshot_close(opening.file);
    if (status != WEIR_OK) {
        json_decref(course);
        return status;
    }
    if (course != NULL) {
        json_object_set_new(view, "course", course);
    }
    api_answer(call, view);
    return WEIR_OK;
}

/* A number of the body within [lo, hi], or 0. */
static weir_status body_number(const struct api_call *call, const char *name, double lo, double hi,
                               double *out, struct weir_error *err)
{
    const json_t *value = json_object_get(call->body, name);
    *out = json_number_value(value);
    if (value != NULL && !json_is_null(value) &&
        (!json_is_number(value) || !(*out >= lo && *out <= hi))) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.%s: expected a number from %g to %g", name,
                              lo, hi);
    }
    return WEIR_OK;
}

static weir_status read_thresholds(const struct api_call *call, struct weir_drift_config *out,
                                   struct weir_error *err)
{
    double window, confirm_k, confirm_n;
    WEIR_TRY(body_number(call, "false_alarm_rate", 1e-5, 0.2, &out->false_alarm_rate, err));
    WEIR_TRY(body_number(call, "min_effect", -1, 100, &out->min_effect, err));
    WEIR_TRY(body_number(call, "window", WEIR_DRIFT_MIN_VALUES, 100000, &window, err));
    WEIR_TRY(body_number(call, "confirm_k", 1, 32, &confirm_k, err));
    WEIR_TRY(body_number(call, "confirm_n", 1, 32, &confirm_n, err));
    out->window = (uint32_t)window;
    out->confirm_k = (uint32_t)confirm_k;
    out->confirm_n = (uint32_t)confirm_n;
    return WEIR_OK;
}

/* The document to replay with: of the body, or a revision that the snapshot has. NULL: none. */
static weir_status read_document(struct api_call *call, const struct weir_snapshot_file *file,
                                 struct weir_ion_doc **out, struct weir_error *err)
{
    json_t *given = json_object_get(call->body, "document"), *document = NULL;
    bool is_given = given != NULL && !json_is_null(given);
    int64_t revision;
    weir_status status = WEIR_OK;
    WEIR_TRY(api_body_int(call, "revision", 0, &revision, err));
    *out = NULL;
    if (is_given && revision > 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$: a document or a revision to replay with, not both");
    }
    if (is_given) {
        document = json_incref(given);
    } else if (revision > 0) {
        char *text;
        WEIR_TRY(weir_snapshot_revision(file, revision, call->arena, &text, err));
        WEIR_TRY(weir_json_parse(text, strlen(text), "the revision's document", &document, err));
    }
    if (document != NULL) {
        *out = WEIR_ARENA_NEW(call->arena, struct weir_ion_doc);
        json_t *warnings = json_array();
        weir_ion_replace_old_words(document, warnings);
        json_decref(warnings);
        status = weir_ion_doc_parse(document, call->arena, *out, err);
    }
    json_decref(document);
    return status;
}

static weir_status replay(struct api_call *call, struct weir_snapshot_file *file, json_t **out_view,
                          struct weir_error *err)
{
    struct weir_replay_rules rules = {0};
    struct weir_ion_doc *doc;
    WEIR_TRY(read_thresholds(call, &rules.drift, err));
    WEIR_TRY(read_document(call, file, &doc, err));
    rules.doc = doc;
    return weir_snapshot_replay(file, &rules, call->arena, out_view, err);
}

weir_status api_snapshot_replay(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    static const char *const fields[] = {"document", "revision",  "false_alarm_rate", "min_effect",
                                         "window",   "confirm_k", "confirm_n",        NULL};
    struct opening opening = {.call = call};
    json_t *view = NULL;
    (void)txn;
    WEIR_TRY(api_body_only(call, fields, err));
    WEIR_TRY(api_read(call, open_in, &opening, err));
    weir_status status = replay(call, opening.file, &view, err);
    weir_snapshot_close(opening.file);
    WEIR_TRY(status);
    api_answer(call, view);
    return WEIR_OK;
}

weir_status api_snapshot_export(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_snapshot snapshot;
    const struct weir_capture capture = capture_of(call);
    WEIR_TRY(
        weir_txn_get(txn, &weir_snapshot_resource, call->params[0], call->arena, &snapshot, err));
    WEIR_TRY(check_reads(call, &snapshot, exported, WEIR_ARRAY_LEN(exported), err));
    weir_http_response_file(call->response, 200, "application/x-tar",
                            weir_snapshot_path(&capture, snapshot.id, call->arena));
    weir_http_response_header(
        call->response, "Content-Disposition",
        weir_arena_printf(call->arena, "attachment; filename=\"%s.tar\"", snapshot.name));
    return WEIR_OK;
}

struct deleting {
    struct api_call *call;
    struct weir_snapshot snapshot;
};

static weir_status delete_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct deleting *deleting = context;
    struct api_call *call = deleting->call;
    struct control control = api_control(call);
    WEIR_TRY(weir_txn_get(txn, &weir_snapshot_resource, call->params[0], call->arena,
                          &deleting->snapshot, err));
    WEIR_TRY(weir_txn_delete(txn, &weir_snapshot_resource, call->params[0], err));
    return control_log(&control, txn, "ions", "snapshot_deleted",
                       weir_arena_printf(call->arena, "project/%s", deleting->snapshot.project),
                       weir_arena_printf(call->arena, "Snapshot %s of ION %s was deleted.",
                                         deleting->snapshot.name, deleting->snapshot.ion),
                       err);
}

weir_status api_snapshot_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct deleting deleting = {.call = call};
    const struct weir_capture capture = capture_of(call);
    (void)txn;
    WEIR_TRY(api_write(call, delete_in, &deleting, err));
    weir_snapshot_discard(&capture, deleting.snapshot.id); /* else at the next start */
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

weir_status api_ion_revisions(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    return api_list_of_ion(call, txn, "revision", err);
}
