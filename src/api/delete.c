/** Deleting datasets, and jobs that are over. */
#include "control/delete.h"
#include "api/answer.h"
#include "api/args.h"
#include "api/functions.h"
#include "control/freeze.h"
#include "retain/retain.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/** A dataset on its way out. */
struct removing {
    struct api_call *call;
    bool is_forced, is_moved;
    char *path, *aside; /* its folder, and where that goes before it is removed */
};

/* The folder goes aside with the rows, so that a dataset that is made anew never finds the old files. */
static weir_status remove_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct removing *removing = context;
    struct api_call *call = removing->call;
    struct control control = api_control(call);
    struct weir_dataset dataset;
    WEIR_TRY(
        control_dataset_delete(&control, txn, call->params[0], removing->is_forced, &dataset, err));
    if (dataset.is_uploaded && !removing->is_moved) { /* else the folder is somebody else's */
        removing->path = dataset.path;
        removing->is_moved = rename(removing->path, removing->aside) == 0;
        if (!removing->is_moved && errno != ENOENT) {
            return weir_error_set_errno(err, errno, "cannot move %s", removing->path);
        }
    }
    return WEIR_OK;
}

weir_status api_dataset_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct removing removing = {.call = call};
    struct weir_error ignored;
    enum freeze_state state = FREEZE_DONE;
    int64_t force;
    (void)txn;
    WEIR_TRY(api_query_int(call, "force", 0, 0, 1, &force, err));
    json_decref(freezer_look(call->api->freezer, call->params[0], 0, &state, NULL));
    if (state == FREEZE_RUNNING) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "dataset %s is being frozen: try again when that is over",
                              call->params[0]);
    }
    removing.is_forced = force != 0;
    removing.aside =
        weir_arena_printf(call->arena, "%s/datasets/.gone-%s-%lld", call->api->state_dir,
                          call->params[0], (long long)call->now_ms);
    weir_status status = api_write(call, remove_rows, &removing, err);
    if (status != WEIR_OK && removing.is_moved) {
        (void)rename(removing.aside, removing.path);
    }
    WEIR_TRY(status);
    if (removing.is_moved && weir_dir_remove(removing.aside, &ignored) != WEIR_OK) {
        weir_log(WEIR_LOG_WARN, "dataset_files_left", WEIR_KV_STR("folder", removing.aside),
                 WEIR_KV_STR("error", ignored.message));
    }
    weir_http_response_empty(call->response);
    return WEIR_OK;
}

static weir_status check_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    struct control control = api_control(call);
    return control_job_check_unused(&control, txn, call->params[0], err);
}

weir_status api_job_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    WEIR_TRY(api_write(call, check_job, call, err));
    WEIR_TRY(weir_retain_job_remove(call->api->store, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
