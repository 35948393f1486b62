/** weir job submit, cancel, restart, resume. */
#include "cli/find.h"
#include "cli/input.h"
#include "cli/job_ask.h"
#include "cli/program_files.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define SPEC_MAX_BYTES ((size_t)1 << 20)

struct plain_options {
    struct cli_common common;
};

static const struct weir_option plain_options[] = {CLI_COMMON_OPTIONS(plain_options)};

weir_status cli_job_post(struct cli_call *call, const char *path, const json_t *body,
                         const char *what, char **out_id, struct weir_error *err)
{
    json_t *job;
    WEIR_TRY(cli_rest(call, "POST", path, body, &job, err));
    char *id = cli_text(call, job, "id");
    if (cli_is_json(call)) {
        cli_print_json(job);
    } else {
        printf("job %s (%s) %s\n", cli_text(call, job, "name"), cli_short_id(id), what);
    }
    json_decref(job);
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
    WEIR_OPT(submit_options, file, "file", 'f', TEXT, NULL, 0, 0, "FILE",
             "The job: {name, kind, spec} as YAML"),
    WEIR_OPT(submit_options, project, "project", 0, TEXT, NULL, 0, 0, "NAME",
             "Whose job it is, if the file does not say"),
    WEIR_OPT(submit_options, cpu_millis, "cpus", 0, CPUS, "-1", -1, 4096, "N",
             "CPUs of each task: 2, 0.5 or 500m (else what the file says)"),
    WEIR_OPT(submit_options, memory, "memory", 0, TEXT, NULL, 0, 0, "SIZE",
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

static weir_status run_submit(struct cli_call *call, struct weir_error *err)
{
    const struct submit_options *options = call->options;
    char *text;
    size_t len;
    json_t *body;
    if (options->file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "which file? weir job submit -f FILE");
    }
    WEIR_TRY(cli_input_read(options->file, SPEC_MAX_BYTES, call->arena, &text, &len, err));
    WEIR_TRY(weir_yaml_parse(text, len, options->file, false, &body, err));
    if (options->project != NULL && json_is_object(body) &&
        json_object_get(body, "project") == NULL) {
        json_object_set_new(body, "project", json_string(options->project));
    }
    json_t *spec = json_object_get(body, "spec");
    const char *project = json_string_value(json_object_get(body, "project"));
    weir_status status = json_is_object(spec) ? ask_for_more(options, spec, err) : WEIR_OK;
    if (status == WEIR_OK) {
        status = cli_connect(call, err);
    }
    if (status == WEIR_OK) {
        status = program_files_send(call, options->file, project, "$.spec", spec, err);
    }
    if (status == WEIR_OK) {
        job_ask_warn(call, &options->ask);
        status = cli_job_post(call, "/api/v1/jobs", body, "is submitted", NULL, err);
    }
    json_decref(body);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", options->file);
}

const struct cli_command cli_job_submit = {
    .name = "job submit",
    .usage = "-f FILE [OPTIONS]",
    .summary = "Submit a job that a file describes",
    .min_words = 0,
    .max_words = 0,
    CLI_OPTIONS(submit_options, submit_options),
    .run = run_submit,
};

/* POST to the job's path that ends with `verb`. */
static weir_status post_verb(struct cli_call *call, const char *verb, const char *what,
                             struct weir_error *err)
{
    char *id;
    WEIR_TRY(cli_find(call, &find_job, call->words[0], &id, err));
    char *pattern = weir_arena_printf(call->arena, "/api/v1/jobs/{}/%s", verb);
    return cli_job_post(call, cli_path1(call, pattern, id), NULL, what, NULL, err);
}

static weir_status run_cancel(struct cli_call *call, struct weir_error *err)
{
    return post_verb(call, "cancel", "is cancelled", err);
}

static weir_status run_restart(struct cli_call *call, struct weir_error *err)
{
    char *what = weir_arena_printf(call->arena, "begins %s anew", call->words[0]);
    return post_verb(call, "restart", what, err);
}

static weir_status run_resume(struct cli_call *call, struct weir_error *err)
{
    json_t *job;
    char *id;
    WEIR_TRY(cli_find(call, &find_job, call->words[0], &id, err));
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}", id), NULL, &job, err));
    bool is_held = json_is_true(json_object_get(job, "is_held"));
    json_decref(job);
    return post_verb(call, "resume",
                     is_held
                         ? "is held no longer"
                         : weir_arena_printf(call->arena, "goes on from the last checkpoint of %s",
                                             call->words[0]),
                     err);
}

static weir_status run_hold(struct cli_call *call, struct weir_error *err)
{
    return post_verb(call, "hold", "is held", err);
}

static weir_status run_requeue(struct cli_call *call, struct weir_error *err)
{
    return post_verb(call, "requeue", "saves what it has and goes back to its queue", err);
}

static weir_status run_priority(struct cli_call *call, struct weir_error *err)
{
    json_t *job;
    char *id, *end;
    long long priority = strtoll(call->words[1], &end, 10);
    if (end == call->words[1] || *end != '\0') {
        return weir_error_set(err, WEIR_ERR_INVALID, "\"%.40s\": expected a number",
                              call->words[1]);
    }
    WEIR_TRY(cli_find(call, &find_job, call->words[0], &id, err));
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_pack("{s:I}", "priority", priority);
    WEIR_TRY(cli_rest(call, "PATCH", cli_path1(call, "/api/v1/jobs/{}", id), body, &job, err));
    if (cli_is_json(call)) {
        cli_print_json(job);
    } else {
        printf("job %s (%s) has priority %lld\n", cli_text(call, job, "name"), cli_short_id(id),
               priority);
    }
    json_decref(job);
    return WEIR_OK;
}

const struct cli_command cli_job_priority = {
    .name = "job priority",
    .usage = "JOB N [-o json]",
    .summary = "Set the priority of a job that waits or runs; the higher goes first in its queue",
    .min_words = 2,
    .max_words = 2,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_priority,
};

const struct cli_command cli_job_hold = {
    .name = "job hold",
    .usage = "JOB [-o json]",
    .summary = "Stop a job, and give it no node until `weir job resume`; a training saves first",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_hold,
};

const struct cli_command cli_job_requeue = {
    .name = "job requeue",
    .usage = "JOB [-o json]",
    .summary = "Stop a job and let it wait for nodes again; a training goes on from where it was",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_requeue,
};

const struct cli_command cli_job_cancel = {
    .name = "job cancel",
    .usage = "JOB [-o json]",
    .summary = "Cancel a job",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_cancel,
};

const struct cli_command cli_job_restart = {
    .name = "job restart",
    .usage = "JOB [-o json]",
    .summary = "Start a job that is over again, as a new one",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_restart,
};

const struct cli_command cli_job_resume = {
    .name = "job resume",
    .usage = "JOB [-o json]",
    .summary = "Let a held job go on; or a training that failed or was cancelled, from its last "
               "checkpoint",
    .min_words = 1,
    .max_words = 1,
    CLI_OPTIONS(plain_options, plain_options),
    .run = run_resume,
};
