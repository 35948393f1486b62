/** weir sweep run, list, get, pause, resume, stop, delete: many trials of one job, each with other parameters. */
#include "cli/core/find.h"
#include "cli/core/input.h"
#include "cli/core/noun.h"
#include "cli/core/verb.h"
#include "cli/core/wait.h"
#include "cli/job/program_files.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define DOCUMENT_MAX_BYTES ((size_t)4 << 20)
#define LOOK_EVERY_MS      500

struct sweep_options {
    struct cli_common common;
    char *project;
    bool is_following, is_dry_run;
    int64_t limit;
};

static const struct weir_option run_options[] = {
    CLI_COMMON_OPTIONS(sweep_options),
    CLI_FLAG(sweep_options, is_following, "follow", 'f',
             "Say how far it is until it is over; the exit status is 0 if it succeeds"),
    CLI_FLAG(sweep_options, is_dry_run, "dry-run", 0, "Check it, and begin nothing"),
    CLI_TEXT(sweep_options, project, "project", 0, "NAME", "Whose it is, if the file does not say"),
};

static const struct weir_option list_options[] = {
    CLI_COMMON_OPTIONS(sweep_options),
    WEIR_OPT(sweep_options, limit, "limit", 0, INT, "50", 1, 100000, "N", "At most so many"),
};

/* How far it is. In the arena. */
static char *line_of(struct cli_call *call, const json_t *sweep)
{
    return cli_fill(call,
                    "sweep/{id:short} {name}: {state}, {n_made} of {n_trials} trials, {n_open} "
                    "open, {n_stopped} stopped early, {n_failed} failed"
                    "{n_paused=0?|{n_paused?, {n_paused} waiting at a rung}}"
                    "{best=0?|{best?; best: trial {best}, {metric} {best_value}}}"
                    "{reason?; {reason}}",
                    NULL, sweep);
}

static void print_sweep(struct cli_call *call, const json_t *sweep)
{
    if (cli_is_json(call)) {
        cli_print_json(sweep);
    } else {
        printf("%s\n", line_of(call, sweep));
    }
}

static bool is_over(const json_t *sweep)
{
    const char *state = json_string_value(json_object_get(sweep, "state"));
    return state != NULL && strcmp(state, "RUNNING") != 0 && strcmp(state, "PAUSED") != 0 &&
           strcmp(state, "STOPPING") != 0;
}

/* What changed in a sweep need not be seen in its line. */
static const char *print_if_new(struct cli_call *call, const json_t *sweep, const char *before)
{
    const char *line = line_of(call, sweep);
    if (before == NULL || strcmp(line, before) != 0) {
        printf("%s\n", line);
        (void)fflush(stdout);
    }
    return line;
}

/* Why the trials that are under way wait, if none of them runs. */
static weir_status tell_wait(struct cli_call *call, const char *id, struct cli_wait *wait,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *trials = NULL, *job = NULL;
    const char *waiting = NULL;
    json_t *trial;
    size_t i;
    bool has_running = false;
    WEIR_TRY(cli_noun_list(call, cli_noun_find("trial"), id, NULL, 0, 1000, &trials, err));
    json_array_foreach(json_object_get(trials, "items"), i, trial)
    {
        const char *state = json_string_value(json_object_get(trial, "state"));
        const char *own = json_string_value(json_object_get(trial, "job"));
        bool is_open = strcmp(state, "WANTED") == 0 || strcmp(state, "RUNNING") == 0;
        bool has_started = json_is_string(json_object_get(trial, "started_ms"));
        has_running = has_running || (is_open && has_started);
        waiting = is_open && !has_started && own != NULL && waiting == NULL ? own : waiting;
    }
    if (has_running || waiting == NULL) {
        cli_wait_tell(call, wait, NULL);
        return WEIR_OK;
    }
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}", waiting), NULL, &job, err));
    cli_wait_tell(call, wait, cli_job_waits(job));
    return WEIR_OK;
}

/* A line whenever it has changed; as JSON, the record when it is over. */
static weir_status follow(struct cli_call *call, const char *id, struct weir_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    const char *path = cli_path1(call, "/api/v1/sweeps/{}", id);
    const char *line = NULL;
    struct cli_wait wait = {.what = "the sweep"};
    json_t *sweep, *before = NULL;
    bool has_ended = false;
    weir_status status = WEIR_OK;
    while (!has_ended) {
        status = status == WEIR_OK ? cli_rest(call, "GET", path, NULL, &sweep, err) : status;
        if (status != WEIR_OK) {
            json_decref(before);
            return status;
        }
        if (!cli_is_json(call) && !json_equal(before, sweep)) {
            line = print_if_new(call, sweep, line);
        }
        has_ended = is_over(sweep);
        json_decref(before);
        before = sweep;
        if (!has_ended) {
            status = tell_wait(call, id, &wait, err);
            (void)nanosleep(&pause, NULL);
        }
    }
    if (cli_is_json(call)) {
        cli_print_json(before);
    }
    const char *state = json_string_value(json_object_get(before, "state"));
    call->exit_status = strcmp(state, "SUCCEEDED") == 0 ? 0 : 1;
    json_decref(before);
    return WEIR_OK;
}

static weir_status run_sweep_run(struct cli_call *call, struct weir_error *err)
{
    const struct sweep_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *document = NULL, *answer = NULL;
    WEIR_TRY(
        cli_input_yaml(call->words[0], DOCUMENT_MAX_BYTES, false, call->arena, &document, err));
    cli_input_project(document, options->project);
    json_t *spec = json_object_get(json_object_get(document, "job"), "spec");
    const char *project = json_string_value(json_object_get(document, "project"));
    WEIR_TRY(cli_connect(call, err));
    WEIR_TRY(program_files_send(call, call->words[0], project, "$.job.spec", spec, err));
    WEIR_TRY(cli_rest(call, "POST",
                      options->is_dry_run ? "/api/v1/sweeps?dry_run=1" : "/api/v1/sweeps", document,
                      &answer, err));
    if (options->is_following && !options->is_dry_run) {
        return follow(call, cli_text(call, answer, "id"), err);
    }
    if (options->is_dry_run) {
        cli_print_said(call, answer,
                       cli_fill(call, "sweep {name} is good: {n_trials} trials by method {method}",
                                NULL, answer));
    } else {
        print_sweep(call, answer);
    }
    return WEIR_OK;
}

const struct cli_command cli_sweep_run = {
    .name = "sweep run",
    .usage = "FILE [--project NAME] [--follow] [--dry-run]",
    .summary = "Try a job with many parameters, and find those that do best",
    .help = "FILE is YAML or JSON (- for standard input): name, job, parameters, goal, method, "
            "trials, parallel.\n"
            "\"{{NAME}}\" in the job's specification becomes the value of a parameter; a command "
            "finds it as\nWEIR_PARAM_NAME, too. weir explain sweep-methods and sweep-parameters "
            "list what there is.",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(sweep_options, run_options),
    .run = run_sweep_run,
};

const struct cli_command cli_sweep_list = {
    .name = "sweep list",
    .usage = "",
    .summary = "List sweeps, newest first",
    .flags = CLI_WIDE | CLI_YAML,
    CLI_OPTIONS(sweep_options, list_options),
    CLI_VERBS({.lists = "sweeps"}),
};

static weir_status run_sweep_get(struct cli_call *call, struct weir_error *err)
{
    char *id;
    WEIR_AUTO(weir_json_auto_free) json_t *sweep = NULL, *list = NULL;
    size_t n;
    const struct cli_noun *trials = cli_noun_find("trial");
    WEIR_TRY(cli_find(call, &find_sweep, call->words[0], &id, err));
    WEIR_TRY(cli_rest(call, "GET", cli_path1(call, "/api/v1/sweeps/{}", id), NULL, &sweep, err));
    WEIR_TRY(cli_noun_list(call, trials, id, NULL, 0, 100000, &list, err));
    if (cli_is_json(call) || cli_is_yaml(call)) {
        json_object_set(sweep, "trials", json_object_get(list, "items"));
        cli_print_object(call, sweep);
    } else {
        print_sweep(call, sweep);
        const struct cli_column *columns = cli_noun_columns(call, trials, &n);
        cli_print_table(call, list, columns, n);
    }
    return WEIR_OK;
}

const struct cli_command cli_sweep_get = {
    .name = "sweep get",
    .usage = "SWEEP",
    .summary = "Show a sweep and its trials: what each tries, and what came of it",
    .flags = CLI_WIDE | CLI_YAML,
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    .run = run_sweep_get,
};

const struct cli_command cli_sweep_pause = {
    .name = "sweep pause",
    .usage = "SWEEP",
    .summary = "Start no trial of a sweep until it is resumed; those that run go on to their ends",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "sweep", .call = "POST /api/v1/sweeps/{@}/pause", .print = print_sweep}),
};

const struct cli_command cli_sweep_resume = {
    .name = "sweep resume",
    .usage = "SWEEP",
    .summary = "Let a paused sweep go on",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "sweep", .call = "POST /api/v1/sweeps/{@}/resume", .print = print_sweep}),
};

const struct cli_command cli_sweep_stop = {
    .name = "sweep stop",
    .usage = "SWEEP",
    .summary = "End a sweep with what it has; the jobs of its trials are cancelled",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "sweep", .call = "POST /api/v1/sweeps/{@}/stop", .print = print_sweep}),
};

const struct cli_command cli_sweep_delete = {
    .name = "sweep delete",
    .usage = "SWEEP",
    .summary = "Delete a sweep that is over; the jobs and runs of its trials stay",
    CLI_WORDS(1, 1),
    CLI_PLAIN,
    CLI_VERBS({.of = "sweep",
               .call = "DELETE /api/v1/sweeps/{@}",
               .say = "sweep/{@:short} deleted; its jobs and runs stay",
               .gives = "noun='sweep' id=@ deleted=true"}),
};
