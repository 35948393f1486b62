/** weir apply, diff, edit: an ION as a document; and documents of Kubeflow and Kubernetes, which become jobs. */
#include "cli/core/input.h"
#include "cli/core/noun.h"
#include "cli/core/verb.h"
#include "cli/job/job_foreign.h"
#include "cli/job/program_files.h"

#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DOCUMENT_MAX_BYTES ((size_t)1 << 20)

struct apply_options {
    struct cli_common common;
    char *file, *project, *image;
    bool sandbox;
    bool dry_run;
};

static const struct weir_option apply_options[] = {
    CLI_COMMON_OPTIONS(apply_options),
    CLI_TEXT(apply_options, file, "file", 'f', "FILE",
             "YAML documents, or a folder of such files; - reads standard input"),
    CLI_FLAG(apply_options, sandbox, "sandbox", 0,
             "Try it: sinks, alerts and ports of the document touch nothing real"),
    CLI_FLAG(apply_options, dry_run, "dry-run", 0,
             "Check it and say what would come of it; nothing changes"),
    CLI_TEXT(apply_options, project, "project", 0, "NAME",
             "Whose it is, if the file does not say; of a job always"),
    CLI_TEXT(apply_options, image, "image", 0, "IMAGE",
             "Of jobs, in place of their containers': as of weir job run; none: the nodes' own "
             "programs"),
};

static void print_plan(struct cli_call *call, const json_t *answer)
{
    size_t i;
    json_t *effect, *effects = json_object_get(answer, "effects");
    printf("ion/%s would be revision %s\n", cli_text(call, answer, "name"),
           cli_text(call, answer, "revision"));
    json_array_foreach(effects, i, effect)
    {
        printf("  %s\n", cli_text(call, effect, "text"));
    }
    if (json_array_size(effects) == 0) {
        printf("  Nothing starts, stops or is deployed.\n");
    }
}

static weir_status check_kind(const char *path, const json_t *document, struct weir_error *err)
{
    const char *kind = json_string_value(json_object_get(document, "kind"));
    bool is_job = json_object_get(document, "spec") != NULL;
    return kind != NULL && strcmp(kind, "ion") == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s: $.kind: expected \"ion\"%s%.40s%s",
                                path, kind != NULL ? ", got " : "", kind != NULL ? kind : "",
                                is_job ? "; a job is submitted: `weir job submit -f FILE`" : "");
}

static weir_status apply_one(struct cli_call *call, const char *path, json_t *document,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *answer = NULL;
    WEIR_TRY(check_kind(path, document, err));
    const struct apply_options *options = call->options;
    const char *where = options->dry_run && options->sandbox ? "/api/v1/ions?mode=sandbox&dry_run=1"
                        : options->dry_run                   ? "/api/v1/ions?dry_run=1"
                        : options->sandbox                   ? "/api/v1/ions?mode=sandbox"
                                                             : "/api/v1/ions";
    cli_input_project(document, options->project);
    weir_status status = program_files_send_ion(call, path, document, err);
    status = status == WEIR_OK ? cli_rest(call, "POST", where, document, &answer, err) : status;
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", path);
    }
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(answer, "warnings"), i, warning)
    {
        (void)fprintf(stderr, "warning: %s: %s\n", path, json_string_value(warning));
    }
    if (cli_is_json(call)) {
        cli_print_json(answer);
    } else if (options->dry_run) {
        print_plan(call, answer);
    } else {
        printf("%s\n", cli_fill(call,
                                "ion/{name} applied, revision {revision}{mode=sandbox?, in the "
                                "sandbox}",
                                NULL, answer));
    }
    return WEIR_OK;
}

/** What is to be applied. */
struct applying {
    json_t *documents;  /**< An array. */
    const char **paths; /**< The file of each. */
    size_t n;
    struct job_foreign *foreign; /**< Those that become jobs, in order. */
    size_t n_foreign;
};

static void applying_fini(struct applying *applying)
{
    for (size_t i = 0; i < applying->n_foreign; i++) {
        weir_kubeflow_fini(&applying->foreign[i].job);
    }
    json_decref(applying->documents);
}

/* The documents of a file, and in place of a List of Kubernetes those that it holds. */
static json_t *documents_of(const json_t *documents)
{
    json_t *all = json_array(), *document;
    size_t i;
    json_array_foreach(documents, i, document)
    {
        const json_t *items = weir_kubeflow_list(document);
        if (items != NULL) {
            (void)json_array_extend(all, (json_t *)items);
        } else if (!json_is_null(document)) {
            json_array_append(all, document);
        }
    }
    return all;
}

/* Those of one file, with the others. */
static weir_status read_file(struct cli_call *call, const char *path, struct applying *applying,
                             struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *documents = NULL;
    WEIR_TRY(cli_input_yaml(path, DOCUMENT_MAX_BYTES, true, call->arena, &documents, err));
    WEIR_AUTO(weir_json_auto_free) json_t *all = documents_of(documents);
    size_t n = applying->n + json_array_size(all);
    const char **paths = WEIR_ARENA_ARRAY(call->arena, n + 1, const char *);
    memcpy(paths, applying->paths != NULL ? applying->paths : paths, applying->n * sizeof *paths);
    for (size_t i = applying->n; i < n; i++) {
        paths[i] = path;
    }
    applying->paths = paths;
    applying->n = n;
    (void)json_array_extend(applying->documents, all);
    return WEIR_OK;
}

static void find_foreign(struct cli_call *call, struct applying *applying)
{
    applying->foreign = WEIR_ARENA_ARRAY(call->arena, applying->n, struct job_foreign);
    for (size_t i = 0; i < applying->n; i++) {
        const json_t *document = json_array_get(applying->documents, i);
        if (weir_kubeflow_is(document) && !weir_kubeflow_is_config_map(document)) {
            applying->foreign[applying->n_foreign++] =
                (struct job_foreign){.path = applying->paths[i], .document = document};
        }
    }
}

/* The documents of a file or a folder; *out is the caller's also with an error. */
static weir_status read_documents(struct cli_call *call, struct applying *out,
                                  struct weir_error *err)
{
    const struct apply_options *options = call->options;
    char **files;
    size_t n;
    if (options->file == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "which file? weir %s -f FILE",
                              call->command->name);
    }
    out->documents = json_array();
    WEIR_TRY(cli_input_files(options->file, call->arena, &files, &n, err));
    for (size_t i = 0; i < n; i++) {
        WEIR_TRY(read_file(call, files[i], out, err));
    }
    find_foreign(call, out);
    return out->n > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID, "%s holds no document", options->file);
}

/* Can something come of each document? A ConfigMap serves the jobs beside it. */
static weir_status check_documents(const struct applying *applying, struct weir_error *err)
{
    for (size_t i = 0; i < applying->n; i++) {
        const json_t *document = json_array_get(applying->documents, i);
        WEIR_TRY(weir_kubeflow_is(document) ? WEIR_OK
                                            : check_kind(applying->paths[i], document, err));
        if (weir_kubeflow_is_config_map(document) && applying->n_foreign == 0) {
            return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                  "%s: a ConfigMap alone makes nothing: its values are for jobs of "
                                  "the same file or folder",
                                  applying->paths[i]);
        }
    }
    return WEIR_OK;
}

/* Jobs are all read first: where one of them is refused, nothing is applied. */
static weir_status apply_all(struct cli_call *call, struct applying *applying,
                             weir_status (*apply)(struct cli_call *call, const char *path,
                                                  json_t *document, struct weir_error *err),
                             struct weir_error *err)
{
    const struct apply_options *options = call->options;
    const struct job_foreign_asks asks = {
        .project = options->project, .image = options->image, .is_dry = options->dry_run};
    struct job_foreign *foreign = applying->foreign;
    if (applying->n_foreign > 0 && options->sandbox) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "--sandbox is for IONs, and %s holds a job; --dry-run tries it",
                              foreign->path);
    }
    WEIR_TRY(check_documents(applying, err));
    WEIR_TRY(job_foreign_read(call, &asks, applying->documents, foreign, applying->n_foreign, err));
    for (size_t i = 0; i < applying->n; i++) {
        json_t *document = json_array_get(applying->documents, i);
        if (!weir_kubeflow_is(document)) {
            WEIR_TRY(apply(call, applying->paths[i], document, err));
        } else if (!weir_kubeflow_is_config_map(document)) {
            WEIR_TRY(job_foreign_submit(call, &asks, foreign++, err));
        }
    }
    return WEIR_OK;
}

static weir_status run_apply(struct cli_call *call, struct weir_error *err)
{
    WEIR_AUTO(applying_fini) struct applying applying = {0};
    WEIR_TRY(read_documents(call, &applying, err));
    return apply_all(call, &applying, apply_one, err);
}

const struct cli_command cli_apply = {
    .name = "apply",
    .usage = "-f FILE [--project NAME] [--image IMAGE] [--sandbox] [--dry-run] [-o json]",
    .summary = "Create or change what YAML files describe",
    .help = "A document is an ION; or one of Kubeflow (PyTorchJob, TFJob, MPIJob) or a Job of "
            "Kubernetes,\n"
            "which is submitted as a job. What a job here has not is named, with what to do "
            "instead, or\n"
            "refused (docs/howto/run-a-kubeflow-document.md).",
    CLI_OPTIONS(apply_options, apply_options),
    .run = run_apply,
};

/* ---- diff ------------------------------------------------------------------------------------- */

static const struct weir_option diff_options[] = {
    CLI_COMMON_OPTIONS(apply_options),
    CLI_TEXT(apply_options, file, "file", 'f', "FILE",
             "YAML documents, or a folder of such files; - reads standard input"),
    CLI_TEXT(apply_options, project, "project", 0, "NAME",
             "Whose it is, if the file does not say; of a job always"),
    CLI_TEXT(apply_options, image, "image", 0, "IMAGE", "Of jobs, as of weir apply"),
};

/* The document that an ION has; JSON null if there is no such ION. A new reference. */
static weir_status load_document(struct cli_call *call, const char *name, json_t **out,
                                 struct weir_error *err)
{
    json_t *ion;
    weir_status status =
        cli_rest(call, "GET", cli_path1(call, "/api/v1/ions/{}", name), NULL, &ion, err);
    if (status == WEIR_ERR_NOT_FOUND) {
        *out = json_null();
        return WEIR_OK;
    }
    WEIR_TRY(status);
    *out = json_incref(json_object_get(ion, "document"));
    json_decref(ion);
    return WEIR_OK;
}

static void print_value(struct cli_call *call, char sign, const char *place, const json_t *value)
{
    printf("%c %s: %s\n", sign, place, weir_json_text(value, call->arena));
}

/* Each member that is another, by its place: "- $.a: 1", "+ $.a: 2". @return How many. */
static size_t print_difference(struct cli_call *call, const char *place, const json_t *old,
                               const json_t *new)
{
    size_t n = 0, i;
    const char *key;
    json_t *value;
    if (old == NULL || new == NULL || json_typeof(old) != json_typeof(new) ||
        !(json_is_object(old) || json_is_array(old))) {
        if (old != NULL && new != NULL && json_equal(old, new)) {
            return 0;
        }
        if (old != NULL && !json_is_null(old)) {
            print_value(call, '-', place, old);
        }
        if (new != NULL && !json_is_null(new)) {
            print_value(call, '+', place, new);
        }
        return 1;
    }
    json_object_foreach((json_t *)old, key, value)
    {
        n += print_difference(call, weir_arena_printf(call->arena, "%s.%s", place, key), value,
                              json_object_get(new, key));
    }
    json_object_foreach((json_t *)new, key, value)
    {
        n += json_object_get(old, key) != NULL
                 ? 0
                 : print_difference(call, weir_arena_printf(call->arena, "%s.%s", place, key), NULL,
                                    value);
    }
    for (i = 0; i < WEIR_MAX(json_array_size(old), json_array_size(new)); i++) {
        n += print_difference(call, weir_arena_printf(call->arena, "%s[%zu]", place, i),
                              json_array_get(old, i), json_array_get(new, i));
    }
    return n;
}

static weir_status diff_one(struct cli_call *call, const char *path, json_t *document,
                            struct weir_error *err)
{
    const char *name = json_string_value(json_object_get(document, "name"));
    json_t *old;
    WEIR_TRY(load_document(call, name != NULL ? name : "", &old, err));
    size_t n = 0;
    if (!cli_is_json(call)) {
        n = print_difference(call, "$", old, document);
    } else {
        n = json_equal(old, document) ? 0 : 1;
    }
    json_decref(old);
    call->exit_status = n > 0 ? 1 : call->exit_status;
    return apply_one(call, path, document, err);
}

static weir_status run_diff(struct cli_call *call, struct weir_error *err)
{
    struct apply_options *options = call->options;
    WEIR_AUTO(applying_fini) struct applying applying = {0};
    WEIR_TRY(read_documents(call, &applying, err));
    options->dry_run = true;
    call->exit_status =
        applying.n_foreign > 0 ? 1 : call->exit_status; /* each would be a new job */
    return apply_all(call, &applying, diff_one, err);
}

const struct cli_command cli_diff = {
    .name = "diff",
    .usage = "-f FILE [--project NAME] [--image IMAGE] [-o json]",
    .summary = "Say what an ION's file would change, and what would come of it",
    .help =
        "As `weir apply --dry-run`, with each member that is another in front. The exit status is "
        "1 if there\nis a difference, 0 if there is none. A document that becomes a job would "
        "always be a new one.",
    CLI_OPTIONS(apply_options, diff_options),
    .run = run_diff,
};

/* ---- edit ------------------------------------------------------------------------------------- */

static const struct weir_option edit_options[] = {CLI_COMMON_OPTIONS(apply_options)};

/* The document as YAML in a file of its own, which only its owner reads. */
static weir_status write_draft(struct cli_call *call, const json_t *document, char *path,
                               struct weir_error *err)
{
    int fd = mkostemps(path, strlen(".yaml"), O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        return weir_error_set_errno(err, errno, "cannot make %s", path);
    }
    cli_write_yaml(call, file, document, 0);
    return fclose(file) == 0 ? WEIR_OK : weir_error_set_errno(err, errno, "cannot write %s", path);
}

/* $VISUAL or $EDITOR may have options: the shell splits them. */
static weir_status run_editor(const char *path, struct weir_error *err)
{
    char *const argv[] = {"/bin/sh", "-c",         "exec ${VISUAL:-${EDITOR:-vi}} \"$1\"",
                          "sh",      (char *)path, NULL};
    const struct weir_spawn spawn = {
        .argv = argv, .in = WEIR_SPAWN_OWN, .out = WEIR_SPAWN_OWN, .said = WEIR_SPAWN_OWN};
    pid_t child;
    WEIR_TRY(weir_spawn_start(&spawn, &child, err));
    return weir_spawn_wait(child) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_CANCELLED,
                                "the editor ended with an error, and nothing was changed: $EDITOR "
                                "names the one to use");
}

static weir_status apply_draft(struct cli_call *call, const char *path, const json_t *before,
                               struct weir_error *err)
{
    WEIR_AUTO(weir_json_auto_free) json_t *documents = NULL;
    WEIR_TRY(cli_input_yaml(path, DOCUMENT_MAX_BYTES, true, call->arena, &documents, err));
    json_t *document = json_array_get(documents, 0);
    if (document == NULL || json_equal(document, before)) {
        printf("nothing was changed\n");
        return WEIR_OK;
    }
    return apply_one(call, path, document, err);
}

static weir_status run_edit(struct cli_call *call, struct weir_error *err)
{
    char *name = call->words[call->n_words - 1];
    const struct cli_noun *noun = cli_noun_split(call->arena, name, &name);
    noun = noun != NULL ? noun : cli_noun_find(call->n_words == 2 ? call->words[0] : "ion");
    const char *dir = getenv("TMPDIR");
    json_t *document;
    if (noun == NULL || strcmp(noun->singular, "ion") != 0) {
        return weir_error_set(
            err, WEIR_ERR_UNSUPPORTED,
            "an ION is edited as a document; of others single things are changed: "
            "`weir deploy`, `weir queue set`, `weir job priority`, `weir model set`");
    }
    WEIR_TRY(load_document(call, name, &document, err));
    if (json_is_null(document)) {
        return weir_error_set(err, WEIR_ERR_NOT_FOUND,
                              "there is no ion \"%.60s\"; `weir get ions` lists them", name);
    }
    char *path = weir_arena_printf(call->arena, "%s/weir-%s-XXXXXX.yaml",
                                   dir != NULL && dir[0] != '\0' ? dir : "/tmp", name);
    weir_status status = write_draft(call, document, path, err);
    status = status == WEIR_OK ? run_editor(path, err) : status;
    bool was_edited = status == WEIR_OK;
    status = was_edited ? apply_draft(call, path, document, err) : status;
    json_decref(document);
    if (status == WEIR_OK || !was_edited) {
        (void)unlink(path);
    } else {
        (void)fprintf(stderr, "weir: what you wrote is kept: weir apply -f %s\n", path);
    }
    return status;
}

const struct cli_command cli_edit = {
    .name = "edit",
    .usage = "[ion] ION | ion/ION",
    .summary = "Change an ION in $EDITOR, and apply it",
    .help = "Its document is opened as YAML, without the comments of the file that it came from. "
            "Secrets are\nmasked, and stay as they are. What is refused is kept in a file.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(apply_options, edit_options),
    .run = run_edit,
};
