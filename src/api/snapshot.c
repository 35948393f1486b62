/** Snapshots of IONs: taken, listed, sent out, taken in; what they show. */
#include "api/api_private.h"
#include "control/control.h"

#include "capture/rows.h"
#include "capture/snapshot.h"
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
    struct weir_snapshot made;
    const char *kind; /* of the event */
};

static weir_status take_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct making *making = context;
    struct weir_snapshot existing;
    /* Before all the work; the insertion decides. */
    if (weir_txn_get(txn, &weir_snapshot_resource, making->wanted.name, making->call->arena,
                     &existing, NULL) == WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_EXISTS,
                              "there is a snapshot \"%s\" already: take "
                              "another name",
                              making->wanted.name);
    }
    return weir_snapshot_take(txn, &making->capture, &making->wanted, making->call->arena,
                              &making->made, err);
}

static weir_status keep_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct making *making = context;
    struct control control = api_control(making->call);
    const struct weir_snapshot *made = &making->made;
    struct weir_ion ion;
    bool is_here = weir_txn_get(txn, &weir_ion_resource, made->ion, making->call->arena, &ion,
                                NULL) == WEIR_OK;
    struct weir_arena *arena = making->call->arena;
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
    return api_read(making->call, take_in, making, err);
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

static weir_status import(struct making *making, struct weir_error *err)
{
    struct api_call *call = making->call;
    const char *project = weir_http_request_query(call->request, "project");
    if (project == NULL) {
        project =
            !call->rows.is_all && call->rows.n_projects == 1 ? call->rows.projects[0] : "default";
    }
    return weir_snapshot_import(&making->capture, call->request->body_file,
                                weir_http_request_query(call->request, "name"), project,
                                call->actor, call->now_ms, call->arena, &making->made, err);
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

weir_status api_snapshot_export(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct weir_snapshot snapshot;
    const struct weir_capture capture = capture_of(call);
    WEIR_TRY(
        weir_txn_get(txn, &weir_snapshot_resource, call->params[0], call->arena, &snapshot, err));
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
    return api_list_of_ion(call, txn, &weir_ion_revision_resource, "revision", err);
}
