/** weir job run: a command, with the files of its folder, as a job. */
#include "cli/admin/project_find.h"
#include "cli/core/find.h"
#include "cli/core/wait.h"
#include "cli/job/job_ask.h"
#include "cli/job/job_code.h"
#include "cli/job/job_image.h"
#include "cli/job/job_program.h"
#include "cli/job/job_script.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct run_options {
    struct cli_common common;
    struct job_program program;
    struct job_ask ask;
    struct job_code code;
    char *name, *project, *image, *kind, *set;
    int64_t tasks, min_tasks, array, parallel, restarts, nodes;
    bool is_following, is_detached;
};

static const struct weir_option run_options[] = {
    CLI_COMMON_OPTIONS(run_options),
    CLI_TEXT(run_options, name, "name", 'n', "NAME",
             "The job's name (else the script's or the program's)"),
    JOB_CODE_OPTIONS(run_options),
    JOB_PROGRAM_OPTIONS(run_options),
    WEIR_OPT(run_options, program.cpu_millis, "cpus", 0, CPUS, "1", 0, 4096, "N",
             "CPUs of each task: 2, 0.5 or 500m"),
    CLI_TEXT(run_options, program.memory, "memory", 0, "SIZE",
             "Most memory of each task, which is kept for it: 512M, 2G"),
    CLI_TEXT(
        run_options, image, "image", 0, "IMAGE",
        "OCI image to run in: an archive's file, which is sent, one's name on the nodes, or in "
        "a registry (pytorch/pytorch:2.3.0), for pods of Kubernetes"),
    WEIR_OPT(run_options, program.network, "network", 0, TEXT, "host", 0, 0, "host|none",
             "none: it reaches its own tasks on the same node, and nothing else"),
    WEIR_OPT(run_options, tasks, "tasks", 0, INT, "1", 1, 1024, "N",
             "Processes that start together; each has its WEIR_RANK of WEIR_SIZE"),
    WEIR_OPT(run_options, min_tasks, "min-tasks", 0, INT, "0", 0, 1024, "N",
             "Begin, and go on, with so many of --tasks (else with all)"),
    WEIR_OPT(run_options, array, "array", 0, INT, "0", 0, 1024, "N",
             "Tasks that are independent of each other; each has its WEIR_ARRAY_INDEX, from 0"),
    WEIR_OPT(run_options, parallel, "parallel", 0, INT, "0", 0, 1024, "N",
             "So many tasks of --array at once (else as many as there is room for)"),
    WEIR_OPT(run_options, kind, "kind", 0, TEXT, "command", 0, 0, "KIND",
             "Kind of job: weir explain job-kinds"),
    WEIR_OPT(run_options, nodes, "nodes", 0, INT, "0", 0, 1024, "N",
             "Nodes, for kinds that have them (else their default)"),
    CLI_LIST(run_options, set, "set", 0, "OPTION=VALUE",
             "Any other option of the kind, as JSON or a word; may be given again"),
    JOB_ASK_OPTIONS(run_options),
    WEIR_OPT(run_options, restarts, "restarts", 0, INT, "0", 0, 1000, "N",
             "How often it is started again after an error"),
    CLI_TEXT(run_options, project, "project", 0, "NAME",
             "Whose job it is (else your only project's, or default's)"),
    CLI_FLAG(run_options, is_following, "follow", 'f', "Print what it writes, and end as it ends"),
    CLI_FLAG(run_options, is_detached, "detach", 'd', "Only submit it: so it is without --follow"),
};

/* --set, joined by newlines: a value that is JSON is that, any other a text. */
static weir_status add_settings(struct cli_call *call, const char *lines, json_t *spec,
                                struct weir_error *err)
{
    while (lines != NULL && *lines != '\0') {
        size_t len = strcspn(lines, "\n"), name_len = strcspn(lines, "=");
        if (name_len == 0 || name_len >= len) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--set: expected OPTION=VALUE");
        }
        char *name = weir_arena_memdup(call->arena, lines, name_len);
        for (char *c = name; *c != '\0'; c++) {
            *c = *c == '-' ? '_' : *c;
        }
        const char *text = lines + name_len + 1;
        size_t text_len = len - name_len - 1;
        json_t *value = json_loadb(text, text_len, JSON_DECODE_ANY, NULL);
        value = value != NULL ? value : json_stringn(text, text_len);
        if (value == NULL || json_object_set_new(spec, name, value) != 0) {
            return weir_error_set(err, WEIR_ERR_INVALID, "--set %s: the value is no UTF-8", name);
        }
        lines += len + (lines[len] == '\n');
    }
    return WEIR_OK;
}

/* A program given by its whole path lies on the nodes; what is here may be what is there. */
static void warn_of_program(const char *path)
{
    struct stat info;
    if (path[0] == '/' && stat(path, &info) == 0 && access(path, X_OK) != 0) {
        (void)fprintf(stderr,
                      "weir: warning: you may not run %s here; if it is no different on the nodes, "
                      "the job fails with exit %d: chmod +x it, or name its program in front\n",
                      path, WEIR_EXIT_NOT_RUN);
    }
}

static weir_status add_image(struct cli_call *call, json_t *spec, struct weir_error *err)
{
    const struct run_options *options = call->options;
    const char *image;
    if (options->image == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(job_image_find(call, options->image, &image, err));
    json_object_set_new(spec, "image", json_string(image));
    return WEIR_OK;
}

/* Kinds other than "command" say in words of their own how many there are. */
static void add_tasks(const struct run_options *options, json_t *spec)
{
    if (options->parallel > 0) {
        json_object_set_new(spec, "parallel", json_integer(options->parallel));
    }
    if (options->array > 0) {
        json_object_set_new(spec, "array", json_integer(options->array));
    } else if (options->min_tasks > 0) {
        json_object_set_new(spec, "tasks",
                            json_pack("{s:I,s:I}", "min", (json_int_t)options->min_tasks, "max",
                                      (json_int_t)options->tasks));
    } else if (strcmp(options->kind, "command") == 0 || options->tasks > 1) {
        json_object_set_new(spec, "tasks", json_integer(options->tasks));
    }
    if (options->nodes > 0) {
        json_object_set_new(spec, "nodes", json_integer(options->nodes));
    }
}

/* The words of what runs, and what they belong to. */
struct program_words {
    const char *name; /* given in front of "--"; NULL: none was */
    char **words;     /* a script has its arguments here */
    size_t n;
    struct job_script *script; /* NULL: no batch script of Slurm */
};

static weir_status make_spec(struct cli_call *call, const char *project,
                             const struct program_words *program, json_t *spec,
                             struct weir_error *err)
{
    struct run_options *options = call->options;
    options->code.project = project;
    options->code.image = options->image;
    WEIR_TRY(job_program_add(call, &options->program, program->words, program->n, spec, err));
    WEIR_TRY(job_ask_add(&options->ask, spec, err));
    add_tasks(options, spec);
    WEIR_TRY(add_image(call, spec, err));
    if (options->image == NULL) {
        warn_of_program(program->words[0]);
    }
    WEIR_TRY(add_settings(call, options->set, spec, err));
    return job_code_add(call, &options->code, program->words, program->n, spec,
                        err); /* last: the others may be refused */
}

static weir_status check_script_options(const struct cli_call *call,
                                        const struct job_script *script, struct weir_error *err)
{
    static const char *const others[] = {"--kind", "--min-tasks", "--image"};
    for (size_t i = 0; i < WEIR_ARRAY_LEN(others); i++) {
        if (cli_has_flag(call, others[i])) {
            return weir_error_set(
                err, WEIR_ERR_INVALID,
                "%s: %s has lines #SBATCH, and is a job of the kind sbatch, which "
                "has none; `weir job run -- bash %s` does not read them",
                others[i], script->path, script->path);
        }
    }
    return WEIR_OK;
}

/* The same for a batch script: what its head says, where the command does not. */
static weir_status make_script_spec(struct cli_call *call, const char *project,
                                    const struct program_words *program, json_t *spec,
                                    struct weir_error *err)
{
    struct run_options *options = call->options;
    struct job_script_asks asks = {.program = &options->program,
                                   .ask = &options->ask,
                                   .code = &options->code,
                                   .name = &options->name,
                                   .nodes = &options->nodes,
                                   .tasks = &options->tasks,
                                   .array = &options->array,
                                   .parallel = &options->parallel};
    char **words;
    size_t n;
    bool is_sent;
    WEIR_TRY(check_script_options(call, program->script, err));
    options->code.project = project;
    options->kind = "sbatch";
    job_script_fill(call, program->script, &asks);
    job_script_add(call, program->script, &asks, program->words, program->n, spec, &words, &n,
                   &is_sent);
    WEIR_TRY(job_program_add(call, &options->program, words, n, spec, err));
    WEIR_TRY(job_ask_add(&options->ask, spec, err));
    WEIR_TRY(add_settings(call, options->set, spec, err));
    /* Without the script, where it is sent apart: it need not be in the folder. */
    return job_code_add(call, &options->code, words, is_sent ? n : 1, spec, err);
}

/* The program; or a batch script: its arguments may stand behind it without "--". */
static weir_status find_program(struct cli_call *call, struct program_words *out,
                                struct weir_error *err)
{
    const struct run_options *options = call->options;
    size_t n_before = job_program_words_before(call);
    char **words = call->words + n_before;
    *out = (struct program_words){.words = words, .n = call->n_words - n_before};
    if (n_before > 0) {
        WEIR_TRY(job_script_find(call, call->words[0], &out->script, err));
    }
    if (out->script != NULL) {
        out->words = call->words + 1;
        out->n = call->n_words - 1;
        return WEIR_OK;
    }
    if (out->n == 0 || n_before > 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "put -- in front of the command: weir job run [NAME] -- python3 "
                              "train.py");
    }
    if (n_before == 1 && options->name != NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--name %s, or %s? Give one name",
                              options->name, call->words[0]);
    }
    out->name = n_before == 1 ? call->words[0] : NULL;
    WEIR_TRY(job_script_find(call, words[0], &out->script, err));
    out->words += out->script != NULL;
    out->n -= out->script != NULL;
    return WEIR_OK;
}

static char *name_of(struct cli_call *call, const struct program_words *program)
{
    const struct run_options *options = call->options;
    char *path = program->script != NULL ? (char *)program->script->path : NULL;
    return program->name != NULL   ? weir_arena_strdup(call->arena, program->name)
           : options->name != NULL ? options->name
           : path != NULL          ? job_program_name_of(call, &path, 1)
                                   : job_program_name_of(call, program->words, program->n);
}

/* What is posted; a new reference. */
static weir_status make_body(struct cli_call *call, const struct program_words *program,
                             json_t **out, struct weir_error *err)
{
    const struct run_options *options = call->options;
    const char *project = NULL;
    WEIR_TRY(cli_project_find(call, options->project, "submit jobs", &project, err));
    WEIR_AUTO(weir_json_auto_free) json_t *spec = json_object();
    WEIR_TRY(program->script != NULL ? make_script_spec(call, project, program, spec, err)
                                     : make_spec(call, project, program, spec, err));
    *out =
        json_pack("{s:s,s:s,s:s,s:I,s:O}", "name", name_of(call, program), "kind", options->kind,
                  "project", project, "max_restarts", (json_int_t)options->restarts, "spec", spec);
    return WEIR_OK;
}

static weir_status submit(struct cli_call *call, const struct program_words *program, char **out_id,
                          struct weir_error *err)
{
    const struct run_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *body = NULL;
    WEIR_AUTO(weir_json_auto_free) json_t *beside = NULL;
    WEIR_TRY(make_body(call, program, &body, err));
    if (program->script != NULL && cli_is_json(call)) {
        beside = json_pack("{s:o}", "not_taken", job_script_remarks(program->script));
    } else if (program->script != NULL) {
        job_script_warn(program->script);
    }
    job_ask_warn(call, &options->ask);
    return cli_job_post_with(call, "/api/v1/jobs", body, "is submitted", beside, out_id, err);
}

static weir_status run_run(struct cli_call *call, struct weir_error *err)
{
    const struct run_options *options = call->options;
    struct program_words program;
    char *id;
    WEIR_TRY(find_program(call, &program, err));
    if (options->is_following && options->is_detached) {
        return weir_error_set(err, WEIR_ERR_INVALID, "--follow or --detach? Give one of the two");
    }
    WEIR_TRY(submit(call, &program, &id, err));
    if (!options->is_following) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_follow_job(call, id, err));
    return cli_job_end(call, id, err);
}

const struct cli_command cli_job_run = {
    .name = "job run",
    .usage = "[NAME] [OPTIONS] -- COMMAND [ARGUMENT …] | [OPTIONS] SCRIPT [ARGUMENT …]",
    .summary = "Run a command, with the files of its folder, as a job",
    .help =
        "The command runs in a folder of its own, in which the files of DIR are, as they are: at "
        "most\n"
        "20,000 and 2 GiB together, without .git, __pycache__, output and what .gitignore names. "
        "Only\n"
        "what has changed is sent. In a git working tree the commit and a patch of what is not in "
        "it\n"
        "are recorded with the run. What the command writes into $WEIR_OUTPUT, the folder output,\n"
        "becomes files of its run. A program that may not be run, or is not there, ends with 126 "
        "or 127\n"
        "and is not tried again.\n"
        "\n"
        "A SCRIPT with lines #SBATCH is a batch script of Slurm: what they ask for is asked for, "
        "unless "
        "an\n"
        "option here says otherwise, and what has no counterpart is named. It runs once, and srun "
        "in it\n"
        "starts programs in all its tasks (docs/howto/run-a-slurm-script.md).",
    CLI_WORDS(0, 200),
    CLI_OPTIONS(run_options, run_options),
    .run = run_run,
};
