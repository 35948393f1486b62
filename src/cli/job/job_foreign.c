#include "cli/job/job_foreign.h"
#include "cli/job/job_ask.h"
#include "cli/job/job_image.h"

#include "cli/core/find.h"

#include <string.h>

weir_status job_foreign_read(struct cli_call *call, const struct job_foreign_asks *asks,
                             const json_t *all, struct job_foreign *foreign, size_t n,
                             struct weir_error *err)
{
    struct weir_kubeflow_given given = {
        .project = asks->project, .image = asks->image, .config_maps = all};
    bool is_named = asks->image != NULL && strcmp(asks->image, WEIR_KUBEFLOW_NO_IMAGE) != 0;
    if (is_named && n > 0) {
        WEIR_TRY(job_image_find(call, asks->image, &given.image, err));
    }
    for (size_t i = 0; i < n; i++) {
        struct job_foreign *one = &foreign[i];
        weir_status status = weir_kubeflow_read(one->document, &given, call->arena, &one->job, err);
        if (status != WEIR_OK) {
            return weir_error_prefix(err, "%s: ", one->path);
        }
    }
    return WEIR_OK;
}

/* A queue is of a project, or of none. */
static weir_status find_project(struct cli_call *call, struct weir_kubeflow *job,
                                struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *queue = NULL;
    if (job->queue == NULL) {
        return WEIR_OK;
    }
    weir_status status =
        cli_rest(call, "GET", cli_path1(call, "/api/v1/queues/{}", job->queue), NULL, &queue, err);
    const char *project = json_string_value(json_object_get(queue, "project"));
    if (project != NULL) {
        json_object_set_new(job->body, "project", json_string(project));
        return WEIR_OK;
    }
    if (status != WEIR_OK && status != WEIR_ERR_NOT_FOUND) {
        return status;
    }
    return weir_error_set(
        err, WEIR_ERR_NOT_FOUND, "%s: %s \"%.60s\"%s: --project NAME says whose job it is",
        job->queue_path, status == WEIR_OK ? "the queue" : "there is no queue", job->queue,
        status == WEIR_OK ? " is a department's, in which no jobs wait" : "");
}

static void warn(const struct job_foreign *foreign)
{
    const struct weir_kubeflow *job = &foreign->job;
    if (job->n_remarks > 0) {
        (void)fprintf(stderr, "weir: warning: not all of %s in %s is taken as it stands:\n",
                      json_string_value(json_object_get(foreign->document, "kind")), foreign->path);
    }
    for (size_t i = 0; i < job->n_remarks; i++) {
        (void)fprintf(stderr, "  %s: %s\n", job->remarks[i].path, job->remarks[i].say);
    }
}

static json_t *remarks_of(const struct weir_kubeflow *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_remarks; i++) {
        json_array_append_new(list, json_pack("{s:s,s:s}", "path", job->remarks[i].path, "instead",
                                              job->remarks[i].say));
    }
    return list;
}

/* What a job would be, as `weir job submit` takes it. */
static weir_status print_dry(struct cli_call *call, struct job_foreign *foreign, json_t *beside,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(cli_rest(call, "POST", "/api/v1/jobs?dry_run=1", foreign->job.body, &answer, err));
    if (beside != NULL) {
        (void)json_object_update(answer, beside);
        cli_print_json(answer);
        return WEIR_OK;
    }
    printf("job %s would be submitted to project %s:\n", cli_text(call, answer, "name"),
           cli_text(call, answer, "project"));
    cli_print_yaml(call, foreign->job.body, 2);
    return WEIR_OK;
}

static weir_status submit(struct cli_call *call, const struct job_foreign_asks *asks,
                          struct job_foreign *foreign, struct weir_error *err)
{
    struct weir_kubeflow *job = &foreign->job;
    const json_t *resources = json_object_get(json_object_get(job->body, "spec"), "resources");
    WEIR_AUTO(weir_json_auto_free) json_t *beside = NULL;
    WEIR_TRY(find_project(call, job, err));
    if (cli_is_json(call)) {
        beside = json_pack("{s:o}", "not_taken", remarks_of(job));
    } else {
        warn(foreign);
    }
    job_gpus_warn(call, json_integer_value(json_object_get(resources, "accelerators")),
                  json_string_value(json_object_get(resources, "accelerator_model")));
    return asks->is_dry ? print_dry(call, foreign, beside, err)
                        : cli_job_post_with(call, "/api/v1/jobs", job->body,
                                            json_object_get(job->body, "held") != NULL
                                                ? "is submitted, and held: weir job resume"
                                                : "is submitted",
                                            beside, NULL, err);
}

weir_status job_foreign_submit(struct cli_call *call, const struct job_foreign_asks *asks,
                               struct job_foreign *foreign, struct weir_error *err)
{
    weir_status status = submit(call, asks, foreign, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", foreign->path);
}
