/** Deleting datasets, and jobs that are over. */
#include "control/delete.h"
#include "api/core/functions.h"
#include "api/core/query.h"
#include "control/freeze.h"
#include "retain/retain.h"
#include "store/table.h"

#include "base/file.h"
#include "base/log.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/** A dataset on its way out. */
struct removing {
    struct api_call *call;
    struct control_deleter by;
    bool is_moved;
    char *path, *aside; /* its folder, and where that goes before it is removed */
};

/* STATE/datasets/.gone-CREATED-NAME: when it was made tells it from another of the name. */
static char *aside_of(const struct weir_api *api, const struct weir_dataset *dataset,
                      struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/datasets/" WEIR_RETAIN_GONE "%lld-%s", api->state_dir,
                             (long long)dataset->created_ms, dataset->name);
}

static struct control_deleter deleter(const struct api_call *call)
{
    return (struct control_deleter){.actor = call->actor, .identity = &call->identity};
}

/* The folder goes aside with the rows, so that a dataset that is made anew never finds the old files. Its new name
 * says whose it was, for a server that is killed in between. */
static weir_status remove_rows(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct removing *removing = context;
    struct api_call *call = removing->call;
    struct control control = api_control(call);
    struct weir_dataset dataset;
    WEIR_TRY(control_dataset_delete(&control, txn, call->params[0], &removing->by, &dataset, err));
    if (dataset.is_uploaded && !removing->is_moved) { /* else the folder is somebody else's */
        removing->path = dataset.path;
        removing->aside = aside_of(call->api, &dataset, call->arena);
        removing->is_moved = rename(removing->path, removing->aside) == 0;
        if (!removing->is_moved && errno != ENOENT) {
            return weir_error_set_errno(err, errno, "cannot move %s", removing->path);
        }
    }
    return WEIR_OK;
}

weir_status api_dataset_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    struct removing removing = {.call = call, .by = deleter(call)};
    struct weir_error ignored;
    enum freeze_state state = FREEZE_DONE;
    (void)txn;
    json_decref(freezer_look(call->api->freezer, call->params[0], 0, &state, NULL));
    if (state == FREEZE_RUNNING) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "dataset %s is being frozen: try again when that is over",
                              call->params[0]);
    }
    removing.by.is_forced = api_query_bool(call, "force");
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

/* ---- after a kill ---------------------------------------------------------------------------- */

struct resuming {
    struct weir_api *api;
    const char *name; /* of a folder that is aside */
    struct weir_arena arena;
};

/* One whose rows are still there was not deleted: its folder comes back. */
static weir_status give_back(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct resuming *resuming = context;
    struct weir_dataset dataset;
    const char *name = strchr(resuming->name + sizeof WEIR_RETAIN_GONE - 1, '-');
    weir_status status = name == NULL ? WEIR_ERR_NOT_FOUND
                                      : weir_txn_get(txn, &weir_dataset_resource, name + 1,
                                                     &resuming->arena, &dataset, err);
    if (status == WEIR_OK && dataset.is_uploaded) {
        const char *aside = aside_of(resuming->api, &dataset, &resuming->arena);
        if (strcmp(strrchr(aside, '/') + 1, resuming->name) == 0 &&
            rename(aside, dataset.path) == 0) {
            weir_log(WEIR_LOG_WARN, "dataset_not_deleted", WEIR_KV_STR("dataset", dataset.name));
        }
    }
    return status == WEIR_ERR_NOT_FOUND ? WEIR_OK : status;
}

void api_delete_resume(struct weir_api *api)
{
    struct resuming resuming = {.api = api};
    struct weir_error err;
    weir_arena_init(&resuming.arena, 0);
    DIR *dir = opendir(weir_arena_printf(&resuming.arena, "%s/datasets", api->state_dir));
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        resuming.name = entry->d_name;
        if (strncmp(entry->d_name, WEIR_RETAIN_GONE, sizeof WEIR_RETAIN_GONE - 1) == 0 &&
            weir_store_read(api->store, give_back, &resuming, &err) != WEIR_OK) {
            weir_log(WEIR_LOG_ERROR, "dataset_not_found_again",
                     WEIR_KV_STR("folder", entry->d_name), WEIR_KV_STR("error", err.message));
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    weir_arena_fini(&resuming.arena);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static weir_status check_job(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct api_call *call = context;
    struct control control = api_control(call);
    const struct control_deleter by = deleter(call);
    WEIR_TRY(control_job_check_unused(&control, txn, call->params[0], &by, err));
    return !weir_retain_job_has_left(call->api->state_dir, call->params[0])
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CONFLICT,
                                "job %s is not deleted: a replica of it has left decisions that "
                                "were never shipped, and the next replica of its pipeline brings "
                                "them; or take its folder out of replicas in the state folder",
                                call->params[0]);
}

weir_status api_job_delete(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    WEIR_TRY(api_write(call, check_job, call, err));
    WEIR_TRY(weir_retain_job_remove(call->api->store, call->params[0], err));
    weir_http_response_empty(call->response);
    return WEIR_OK;
}
