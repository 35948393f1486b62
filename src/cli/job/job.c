/** weir job submit, cancel, restart, resume. */
#include "cli/core/find.h"
#include "cli/core/input.h"
#include "cli/core/verb.h"
#include "cli/job/job_ask.h"
#include "cli/job/program_files.h"

#include "kubeflow/kubeflow.h"

#include <stdlib.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)

weir_status cli_job_post(struct cli_call *call, const char *path, const json_t *body,
                         const char *what, char **out_id, struct weir_error *err)
{
    return cli_job_post_with(call, path, body, what, NULL, out_id, err);
}

weir_status cli_job_post_with(struct cli_call *call, const char *path, const json_t *body,
                              const char *what, json_t *beside, char **out_id,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *job = NULL;
    WEIR_TRY(cli_rest(call, "POST", path, body, &job, err));
    char *id = cli_text(call, job, "id");
    if (beside != NULL) {
        (void)json_object_update(job, beside);
    }
    cli_print_said(call, job,
                   weir_arena_printf(call->arena, "job %s (%s) %s", cli_text(call, job, "name"),
                                     cli_short_id(id), what));
    if (out_id != NULL) {
        *out_id = id;
    }
    return WEIR_OK;
}

struct submit_options {
    struct cli_common common;
    struct job_ask ask;
    char *file, *project, *memory;
    int64_t cpu_millis;
};

static const struct weir_option submit_options[] = {
    CLI_COMMON_OPTIONS(submit_options),
    CLI_TEXT(submit_options, file, "file", 'f', "FILE", "The job: {name, kind, spec} as YAML"),
    CLI_TEXT(submit_options, project, "project", 0, "NAME",
             "Whose job it is, if the file does not say"),
    WEIR_OPT(submit_options, cpu_millis, "cpus", 0, CPUS, "-1", -1, 4096, "N",
             "CPUs of each task: 2, 0.5 or 500m (else what the file says)"),
    CLI_TEXT(submit_options, memory, "memory", 0, "SIZE",
             "Most memory of each task, which is kept for it: 512M, 2G"),
    JOB_ASK_OPTIONS(submit_options),
};

/* In place of what the file says, which has two ways of saying it. */
static weir_status ask_for_more(const struct submit_options *options, json_t *spec,
                                struct weir_error *err)
{
    WEIR_TRY(job_ask_add(&options->ask, spec, err));
    if (options->cpu_millis < 0 && options->memory == NULL) {
        return WEIR_OK;
    }
    json_t *resources = json_object_get(spec, "resources");
    resources = json_is_object(resources) ? json_incref(resources) : json_object();
    if (options->cpu_millis >= 0) {
        (void)json_object_del(spec, "cpus");
        (void)json_object_del(spec, "cpu_slots");
        json_object_set_new(resources, "cpus", weir_json_milli(options->cpu_millis));
    }
    if (options->memory != NULL) {
        (void)json_object_del(spec, "memory_max_bytes");
        json_object_set_new(resources, "memory", json_string(options->memory));
    }
    json_object_set_new(spec, "resources", resources);
    return WEIR_OK;
}

static weir_status submit(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct submit_options *options = call->options;
    cli_input_project(body, options->project);
    json_t *spec = json_object_get(body, "spec");
    const char *project = json_string_value(json_object_get(body, "project"));
    if (json_is_object(spec)) {
        WEIR_TRY(ask_for_more(options, spec, err));
    }
    WEIR_TRY(cli_connect(call, err));
    WEIR_TRY(program_files_send(call, options->file, project, "$.spec", spec, err));
    job_ask_warn(call, &options->ask);
    return cli_job_post(call, "/api/v1/jobs", body, "is submitted", NULL, err);
}

static weir_status run_submit(struct cli_call *call, struct weir_error *err)
{
    const struct submit_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *body = NULL;
    if (options->file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "which file? weir job submit -f FILE");
    }
    WEIR_TRY(cli_input_yaml(options->file, SPEC_MAX_BYTES, false, call->arena, &body, err));
    if (weir_kubeflow_is(body)) {
        return weir_error_set(
            err, WEIR_ERR_INVALID,
            "%s is a document of Kubernetes: `weir apply -f %s` makes a job of it", options->file,
            options->file);
    }
    weir_status status = submit(call, body, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", options->file);
}

const struct cli_command cli_job_submit = {
    .name = "job submit",
    .usage = "-f FILE [OPTIONS]",
    .summary = "Submit a job that a file describes",
    CLI_OPTIONS(submit_options, submit_options),
    .run = run_submit,
};

#define JOB_SAYS "job {name} ({id:short}) "

static weir_status run_resume(struct cli_call *call, struct weir_error *err)
{
    struct cli_verb resume = {.of = "job", .call = "POST /api/v1/jobs/{@}/resume"};
    WEIR_AUTO(weir_json_auto_free) json_t *job = NULL;
    char *id;
    WEIR_TRY(cli_find(call, &find_job, call->words[0], &id, err));
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}", id), NULL, &job, err));
    resume.say = json_is_true(json_object_get(job, "is_held")) ? JOB_SAYS "is held no longer"
                                                               : JOB_SAYS
                     "goes on from the last checkpoint of {0}";
    return cli_verb_run(call, &resume, err);
}

static weir_status read_priority(struct cli_call *call, json_t *body, struct weir_error *err)
{
    char *end;
    long long priority = strtoll(call->words[1], &end, 10);
    if (end == call->words[1] || *end != '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\": expected a number",
                              call->words[1]);
    }
    json_object_set_new(body, "priority", json_integer(priority));
    call->words[1] = weir_arena_printf(call->arena, "%lld", priority);
    return WEIR_OK;
}

const struct cli_command cli_job_priority = {
    .name = "job priority",
    .usage = "JOB N [-o json]",
    .summary = "Set the priority of a job that waits or runs; the higher goes first in its queue",
    CLI_WORDS(2, 2),
    CLI_PLAIN,
    CLI_VERBS({.prepare = read_priority,
               .of = "job",
               .call = "PATCH /api/v1/jobs/{@}",
               .body = "",
               .say = JOB_SAYS "has priority {1}"}),
};

const struct cli_command cli_job_hold = {
    .name = "job hold",
    .usage = "JOB [-o json]",
    .summary = "Stop a job, and give it no node until `weir job resume`; a training saves first",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "job", .call = "POST /api/v1/jobs/{@}/hold", .say = JOB_SAYS "is held"}),
};

const struct cli_command cli_job_requeue = {
    .name = "job requeue",
    .usage = "JOB [-o json]",
    .summary = "Stop a job and let it wait for nodes again; a training goes on from where it was",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "job",
               .call = "POST /api/v1/jobs/{@}/requeue",
               .say = JOB_SAYS "saves what it has and goes back to its queue"}),
};

const struct cli_command cli_job_cancel = {
    .name = "job cancel",
    .usage = "JOB [-o json]",
    .summary = "Cancel a job",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS(
        {.of = "job", .call = "POST /api/v1/jobs/{@}/cancel", .say = JOB_SAYS "is cancelled"}),
};

const struct cli_command cli_job_restart = {
    .name = "job restart",
    .usage = "JOB [-o json]",
    .summary = "Start a job that is over again, as a new one",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS(
        {.of = "job", .call = "POST /api/v1/jobs/{@}/restart", .say = JOB_SAYS "begins {0} anew"}),
};

const struct cli_command cli_job_resume = {
    .name = "job resume",
    .usage = "JOB [-o json]",
    .summary = "Let a held job go on; or a training that failed or was cancelled, from its last "
               "checkpoint",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_resume,
};
