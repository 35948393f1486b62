/** weir batch, weir job results: a model's answers for a whole dataset. */
#include "cli/core/find.h"
#include "cli/job/job_ask.h"

#include "base/file.h"

#include <string.h>

struct batch_options {
    struct cli_common common;
    struct job_ask ask;
    char *name, *project, *split, *format, *folder;
    int64_t tasks, top, batch, shard, cpu_millis;
    bool has_values;
};

static const struct weir_option batch_options[] = {
    CLI_COMMON_OPTIONS(batch_options),
    WEIR_OPT(batch_options, tasks, "tasks", 'n', INT, "1", 1, 1024, "N",
             "Tasks that share the work; the results are the same for any number"),
    WEIR_OPT(batch_options, top, "top", 0, INT, "1", 1, 1000, "K",
             "Classes that each row has, likeliest first"),
    CLI_FLAG(batch_options, has_values, "values", 0,
             "Rows have the values of the model's outputs too"),
    WEIR_OPT(batch_options, format, "format", 0, TEXT, "jsonl", 0, 0, "jsonl|csv",
             "Of the files of results"),
    CLI_TEXT(batch_options, folder, "folder", 0, "DIR",
             "Folder for the results that every node sees (else the server keeps them)"),
    CLI_TEXT(batch_options, split, "split", 0, "train|test",
             "Which pictures of a dataset of the kind idx (else train)"),
    WEIR_OPT(batch_options, batch, "batch", 0, INT, "16", 1, 1024, "N",
             "Pictures that are computed together"),
    WEIR_OPT(batch_options, shard, "shard", 0, INT, "1000", 1, 1000000, "N",
             "Pictures of one file of results"),
    WEIR_OPT(batch_options, cpu_millis, "cpus", 0, CPUS, "1", 0, 4096, "N",
             "CPUs of each task: 2, 0.5 or 500m; rounded up, its computing threads"),
    CLI_TEXT(batch_options, name, "name", 0, "JOB", "Name of the job (else MODEL-DATASET)"),
    CLI_TEXT(batch_options, project, "project", 0, "NAME", "Whose job it is"),
    JOB_ASK_OPTIONS(batch_options),
};

/* "digits-scans" of digits@v3 and scans. */
static const char *name_of(struct cli_call *call)
{
    const struct batch_options *options = call->options;
    const char *model = call->words[0], *dataset = call->words[1];
    return options->name != NULL
               ? options->name
               : weir_arena_printf(call->arena, "%.*s-%.*s", (int)strcspn(model, "@"), model,
                                   (int)strcspn(dataset, "@"), dataset);
}

static weir_status run_batch(struct cli_call *call, struct weir_error *err)
{
    const struct batch_options *options = call->options;
    char *id;
    WEIR_AUTO(weir_json_auto_free)
    json_t *body = json_pack("{s:s,s:s,s:s*,s:{s:s,s:s,s:I,s:I,s:b,s:s,s:I,s:I,s:{s:o}}}", "name",
                             name_of(call), "kind", "batch", "project", options->project, "spec",
                             "model", call->words[0], "dataset", call->words[1], "tasks",
                             (json_int_t)options->tasks, "top", (json_int_t)options->top, "values",
                             options->has_values, "format", options->format, "batch_size",
                             (json_int_t)options->batch, "shard_size", (json_int_t)options->shard,
                             "resources", "cpus", weir_json_milli(options->cpu_millis));
    json_t *spec = json_object_get(body, "spec");
    if (options->folder != NULL) {
        json_object_set_new(spec, "output", json_string(options->folder));
    }
    if (options->split != NULL) {
        json_object_set_new(spec, "split", json_string(options->split));
    }
    WEIR_TRY(job_ask_add(&options->ask, spec, err));
    job_ask_warn(call, &options->ask);
    WEIR_TRY(cli_job_post(call, "/api/v1/jobs", body, "is submitted", &id, err));
    if (!cli_is_json(call)) {
        printf("  how far it is  weir logs %s\n", cli_short_id(id));
        printf("  its results    weir job results %s%s\n", cli_short_id(id),
               options->folder != NULL ? "" : " --folder DIR");
    }
    return WEIR_OK;
}

const struct cli_command cli_batch = {
    .name = "batch",
    .usage = "MODEL[@v3|@ALIAS] DATASET[@v2] [--tasks N] [--top K] [--format csv] [--folder DIR] …",
    .summary = "Predict every picture of a dataset version, as a job",
    .help =
        "Versions are chosen now: the newest if none is named. The results are files of rows, one "
        "row per\npicture; a picture that cannot be read is a row that says why. A job that was "
        "killed goes on from\nthe files that are there.",
    CLI_WORDS(2, 2),
    CLI_OPTIONS(batch_options, batch_options),
    .run = run_batch,
};

/* ---- results --------------------------------------------------------------------------------- */

struct results_options {
    struct cli_common common;
    char *folder;
};

static const struct weir_option results_options[] = {
    CLI_COMMON_OPTIONS(results_options),
    CLI_TEXT(results_options, folder, "folder", 'f', "DIR",
             "Fetch the files into this folder; those that are there and whole stay"),
};

/* The digest that the manifest has for a file; NULL: it has none. */
static const char *digest_of(const json_t *manifest, const char *name)
{
    size_t i;
    json_t *shard;
    json_array_foreach(json_object_get(manifest, "shards"), i, shard)
    {
        const char *other = json_string_value(json_object_get(shard, "name"));
        if (other != NULL && strcmp(other, name) == 0) {
            return json_string_value(json_object_get(shard, "sha256"));
        }
    }
    return NULL;
}

static bool is_whole(const char *path, const char *digest)
{
    char found[WEIR_SHA256_TEXT_BYTES];
    uint64_t n_bytes;
    struct weir_error err;
    return digest != NULL && weir_path_exists(path) &&
           weir_file_sha256(path, found, &n_bytes, &err) == WEIR_OK && strcmp(found, digest) == 0;
}

static weir_status fetch_one(struct cli_call *call, const char *id, const char *name,
                             const char *digest, struct weir_error *err)
{
    const struct results_options *options = call->options;
    const char *path = weir_arena_printf(call->arena, "%s/%s", options->folder, name);
    struct weir_buf bytes;
    if (is_whole(path, digest)) {
        return WEIR_OK;
    }
    if (strchr(name, '/') != NULL || name[0] == '.') {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "the server names a file \"%.60s\"", name);
    }
    weir_buf_init(&bytes, (size_t)1 << 30);
    weir_status status = weir_client_get_bytes(
        call->client, cli_path2(call, "/api/v1/jobs/{}/results/{}", id, name), &bytes, NULL, err);
    if (status == WEIR_OK) {
        status = weir_file_write_atomic(path, bytes.data, bytes.len, 0644, err);
    }
    weir_buf_fini(&bytes);
    WEIR_TRY(status);
    return digest == NULL || is_whole(path, digest)
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CORRUPT,
                                "%s arrived with another digest than the manifest says: damaged on "
                                "the way or in the store",
                                name);
}

static weir_status fetch_all(struct cli_call *call, const char *id, const json_t *answer,
                             struct weir_error *err)
{
    const struct results_options *options = call->options;
    size_t i;
    json_t *file;
    if (options->folder == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(weir_dir_make(options->folder, 0755, err));
    json_array_foreach(json_object_get(answer, "files"), i, file)
    {
        const char *name = cli_text(call, file, "name");
        WEIR_TRY(
            fetch_one(call, id, name, digest_of(json_object_get(answer, "manifest"), name), err));
    }
    return WEIR_OK;
}

static void print_results(struct cli_call *call, const json_t *answer)
{
    static const struct cli_column columns[] = {{"name", "FILE"}, {"bytes", "BYTES"}};
    const struct results_options *options = call->options;
    const json_t *manifest = json_object_get(answer, "manifest");
    const char *output = json_string_value(json_object_get(answer, "output"));
    size_t n_files = json_array_size(json_object_get(answer, "files"));
    if (output != NULL) {
        printf("they are in the folder %s on the nodes\n", output);
        return;
    }
    if (options->folder != NULL) {
        printf("%zu files are in %s\n", n_files, options->folder);
    } else {
        WEIR_AUTO(weir_json_auto_free)
        json_t *table = json_pack("{s:O}", "items", json_object_get(answer, "files"));
        cli_print_table(call, table, columns, WEIR_ARRAY_LEN(columns));
    }
    if (json_is_object(manifest)) {
        printf("all are there: %s pictures of %s by %s, %s of them errors\n",
               cli_text(call, manifest, "n_files"), cli_text(call, manifest, "dataset"),
               cli_text(call, manifest, "model"), cli_text(call, manifest, "n_errors"));
    } else {
        printf("not all are there: the job is %s\n", cli_text(call, answer, "state"));
    }
}

static weir_status run_results(struct cli_call *call, struct weir_error *err)
{
    char *id;
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(cli_find(call, &find_job, call->words[0], &id, err));
    WEIR_TRY(
        cli_rest(call, "GET", cli_path1(call, "/api/v1/jobs/{}/results", id), NULL, &answer, err));
    WEIR_TRY(fetch_all(call, id, answer, err));
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else {
        print_results(call, answer);
    }
    return WEIR_OK;
}

const struct cli_command cli_job_results = {
    .name = "job results",
    .usage = "JOB [--folder DIR] [-o json]",
    .summary = "List the results of a batch prediction, or fetch them, checked by their digests",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(results_options, results_options),
    .run = run_results,
};
