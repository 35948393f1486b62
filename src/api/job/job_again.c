/** A job that is over, started again as a new one: from the beginning, or from its last checkpoint.
 */
#include "api/core/answer.h"
#include "api/core/functions.h"
#include "control/control.h"
#include "framework/framework.h"
#include "store/table.h"

#include "base/file.h"
#include "base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* One new job from an old one; the transaction may run twice. */
struct again {
    struct api_call *call;
    char id[WEIR_UUID_BYTES]; /**< Of the new job, chosen before its checkpoints are linked. */
    bool is_resumed;
    char *from, *to; /**< Folders of checkpoints; to is NULL if the specification names its own. */
};

/* What the old job was submitted with: without what the server added. */
static json_t *submitted_spec(const struct weir_job *job)
{
    json_t *spec = json_loads(job->spec, 0, NULL);
    json_object_del(spec, "run");
    if (json_is_integer(json_object_get(spec, "dataset_version")) &&
        json_is_string(json_object_get(spec, "dataset"))) {
        json_object_del(spec, "data"); /* found again by the dataset's name */
        json_object_del(spec, "dataset_version");
    }
    return spec;
}

static weir_status check_old(const struct again *again, const struct weir_job *job,
                             struct weir_error *err)
{
    int phase = weir_job_phase_from_text(job->state);
    if (job->ion != NULL) {
        const char *pipeline = job->pipeline != NULL ? job->pipeline : "PIPELINE";
        return job->is_service
                   ? weir_error_set(
                         err, WEIR_ERR_CONFLICT,
                         "job %s belongs to ION %s: `weir ion pause %s %s`, then `weir ion "
                         "resume %s %s` begins it anew",
                         job->name, job->ion, job->ion, pipeline, job->ion, pipeline)
                   : weir_error_set(err, WEIR_ERR_CONFLICT,
                                    "job %s belongs to ION %s: `weir trigger %s %s` runs it again",
                                    job->name, job->ion, job->ion, pipeline);
    }
    if (phase < 0 || !weir_job_phase_is_final((enum weir_job_phase)phase)) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s is %s: it can be started again when it is over; "
                              "`weir job cancel` ends it",
                              job->name, job->state);
    }
    const struct weir_job_ops *ops = weir_job_ops_of(job->kind);
    if (again->is_resumed && (ops == NULL || !ops->is_training)) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "job %s is a %s: only trainings have checkpoints to go on from; "
                              "`weir job restart` begins it anew",
                              job->name, job->kind);
    }
    if (again->is_resumed && strcmp(job->state, "SUCCEEDED") == 0) {
        return weir_error_set(err, WEIR_ERR_CONFLICT,
                              "job %s succeeded: there is nothing left to do; `weir job restart` "
                              "begins it anew",
                              job->name);
    }
    return WEIR_OK;
}

static weir_status no_checkpoint(const char *job, struct weir_error *err)
{
    return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                          "job %s has no checkpoint: it made none, or it was removed with age; "
                          "`weir job restart` begins it anew",
                          job);
}

/* Folders of the old job's checkpoints and of the new one's. */
static weir_status find_checkpoints(struct again *again, const struct weir_job *job,
                                    struct weir_error *err)
{
    struct api_call *call = again->call;
    json_t *spec = json_loads(job->spec, 0, NULL);
    const char *own = json_string_value(json_object_get(spec, "checkpoint_dir"));
    again->from = own != NULL ? weir_arena_strdup(call->arena, own)
                              : weir_arena_printf(call->arena, "%s/checkpoints/%s",
                                                  call->api->state_dir, job->id);
    again->to = own != NULL ? NULL
                            : weir_arena_printf(call->arena, "%s/checkpoints/%s",
                                                call->api->state_dir, again->id);
    json_decref(spec);
    return again->to != NULL && !weir_path_is_dir(again->from) ? no_checkpoint(job->name, err)
                                                               : WEIR_OK;
}

/* The new job's folder gets the same files: neither job's is touched by what becomes of the
 * other's. */
static weir_status link_checkpoints(const struct again *again, struct weir_error *err)
{
    WEIR_TRY(weir_dir_make(again->to, 0700, err));
    DIR *folder = opendir(again->from);
    if (folder == NULL) {
        return weir_error_set_errno(err, errno, "cannot read %s", again->from);
    }
    weir_status status = WEIR_OK;
    size_t n = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL && status == WEIR_OK;
         entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char *from = weir_arena_printf(again->call->arena, "%s/%s", again->from, entry->d_name);
        char *to = weir_arena_printf(again->call->arena, "%s/%s", again->to, entry->d_name);
        if (link(from, to) != 0 && errno != EPERM && errno != EEXIST) { /* EPERM: a folder */
            status = weir_error_set_errno(err, errno, "cannot link %s", from);
        }
        n++;
    }
    (void)closedir(folder);
    return status == WEIR_OK && n == 0 ? no_checkpoint(again->call->params[0], err) : status;
}

static weir_status look(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct again *again = context;
    struct weir_job job;
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, again->call->params[0], again->call->arena, &job,
                          err));
    WEIR_TRY(check_old(again, &job, err));
    return again->is_resumed ? find_checkpoints(again, &job, err) : WEIR_OK;
}

static weir_status make_new(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct again *again = context;
    struct api_call *call = again->call;
    struct weir_job old, job;
    json_array_clear(call->publish);
    struct control control = api_control(call);
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &old, err));
    WEIR_TRY(check_old(again, &old, err));
    json_t *spec = submitted_spec(&old);
    struct control_job wanted = {.id = again->id,
                                 .name = old.name,
                                 .project = old.project,
                                 .kind = old.kind,
                                 .spec = spec,
                                 .max_restarts = old.max_restarts,
                                 .resumed_from = again->is_resumed ? old.id : NULL};
    weir_status status = control_job_create(&control, txn, &wanted, &job, err);
    json_decref(spec);
    WEIR_TRY(status);
    const char *how = again->is_resumed ? "goes on from the last checkpoint of" : "is a restart of";
    WEIR_TRY(control_log(
        &control, txn, "jobs", "job_started_again",
        weir_arena_printf(call->arena, "job/%s", job.id),
        weir_arena_printf(call->arena, "Job %s (%s) %s job %s.", job.name, job.id, how, old.id),
        err));
    api_answer_record(call, &weir_job_resource, &job);
    return WEIR_OK;
}

static weir_status start_again(struct api_call *call, bool is_resumed, struct weir_error *err)
{
    struct again again = {.call = call, .is_resumed = is_resumed};
    weir_uuid_make(again.id);
    WEIR_TRY(api_read(call, look, &again, err));
    weir_status status = again.to != NULL ? link_checkpoints(&again, err) : WEIR_OK;
    if (status == WEIR_OK) {
        status = api_write(call, make_new, &again, err);
    }
    if (status != WEIR_OK && again.to != NULL) {
        weir_status removed = weir_dir_remove(again.to, NULL);
        (void)removed; /* the sentence is about what came before */
    }
    return status;
}

weir_status api_job_restart(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    return start_again(call, false, err);
}

/* A job that is held goes on as it is; it is not over. Whoever may hold it may release it; a new job
 * needs the right to submit one. */
struct release {
    struct api_call *call;
    bool is_held, may_submit;
};

static weir_status release_in(struct weir_txn *txn, void *context, struct weir_error *err)
{
    struct release *release = context;
    struct api_call *call = release->call;
    struct weir_job job;
    json_array_clear(call->publish);
    WEIR_TRY(weir_txn_get(txn, &weir_job_resource, call->params[0], call->arena, &job, err));
    const struct weir_row_scope submits = api_projects_with(call, WEIR_RIGHT_JOBS_SUBMIT);
    release->is_held = job.is_held;
    release->may_submit = weir_row_scope_sees(&submits, job.project);
    return job.is_held ? api_job_release(call, txn, err) : WEIR_OK;
}

weir_status api_job_resume(struct api_call *call, struct weir_txn *txn, struct weir_error *err)
{
    (void)txn;
    struct release release = {.call = call};
    WEIR_TRY(api_write(call, release_in, &release, err));
    if (!release.is_held && !release.may_submit) {
        return weir_error_set(err, WEIR_ERR_DENIED,
                              "this job is not held, and to start it again as a new one needs the "
                              "right to submit jobs in its project: ask who has it");
    }
    return release.is_held ? WEIR_OK : start_again(call, true, err);
}
