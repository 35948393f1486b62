/** weir model push, alias, export: models from outside, names for versions, and out again. */
#include "cli/core/find.h"
#include "cli/core/input.h"
#include "cli/core/progress.h"
#include "cli/core/verb.h"
#include "cli/track/model_name.h"
#include "cli/track/try_it.h"

#include "base/file.h"
#include "base/uuid.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LABELS_MAX_BYTES     ((size_t)16 << 20)
#define PREPROCESS_MAX_BYTES ((size_t)64 << 10)
#define GOLDEN_MAX_BYTES     ((size_t)16 << 20)
#define LOOK_MS              180000 /* One answer: the server looks at the file first. */
#define PATIENCE_MS          900000 /* All tries. */

struct push_options {
    struct cli_common common;
    char *run, *labels, *preprocess, *inputs, *golden, *alias, *project;
};

static const struct weir_option push_options[] = {
    CLI_COMMON_OPTIONS(push_options),
    CLI_TEXT(push_options, run, "run", 0, "RUN",
             "Take the file from what this run left; ARTIFACT: the file or folder there, else its "
             "ONNX or safetensors file"),
    CLI_TEXT(push_options, labels, "labels", 0, "FILE",
             "Names of the classes: one a line, or a JSON array"),
    CLI_TEXT(
        push_options, preprocess, "preprocess", 0, "FILE",
        "How a picture becomes the input, YAML or JSON: width, height, mean, std, order, fit …"),
    WEIR_OPT(
        push_options, inputs, "input", 0, LIST, NULL, 0, 0, "NAME=SHAPE",
        "Shape of an input of an ONNX file in place of its own, of numbers and of names of what "
        "is free: x=N,3,H,W"),
    CLI_TEXT(push_options, golden, "golden", 0, "FILE",
             "Requests and the answers that the model must give to them, JSON: a replica checks "
             "them before the version takes traffic"),
    CLI_TEXT(push_options, alias, "alias", 0, "NAME", "Also give the version this name"),
    CLI_TEXT(push_options, project, "project", 0, "NAME",
             "Project of the model, if it is its first version"),
};

/* ---- push ------------------------------------------------------------------------------------ */

static json_t *lines_of(char *text)
{
    json_t *labels = json_array();
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        size_t len = strlen(line);
        len -= len > 0 && line[len - 1] == '\r';
        if (len > 0) {
            json_array_append_new(labels, json_stringn(line, len));
        }
    }
    return labels;
}

static weir_status read_labels(struct cli_call *call, const char *file, json_t *body,
                               struct weir_error *err)
{
    char *text;
    size_t len;
    json_t *labels;
    if (file == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_input_read(file, LABELS_MAX_BYTES, call->arena, &text, &len, err));
    if (text[strspn(text, " \t\r\n")] == '[') {
        WEIR_TRY(weir_json_parse(text, len, file, &labels, err));
    } else {
        labels = lines_of(text);
    }
    json_object_set_new(body, "labels", labels);
    return WEIR_OK;
}

static weir_status read_preprocess(struct cli_call *call, const char *file, json_t *body,
                                   struct weir_error *err)
{
    json_t *rule;
    if (file == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_input_yaml(file, PREPROCESS_MAX_BYTES, false, call->arena, &rule, err));
    json_object_set_new(body, "preprocess", rule);
    return WEIR_OK;
}

/* NAME=SHAPE of each line; a name may have a "=" itself. */
static weir_status read_inputs(char *lines, json_t *body, struct weir_error *err)
{
    json_t *inputs = lines != NULL ? json_object() : NULL;
    for (char *line; (line = strsep(&lines, "\n")) != NULL;) {
        char *shape = strrchr(line, '=');
        if (shape == NULL || shape == line) {
            json_decref(inputs);
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "--input %.80s: expected NAME=SHAPE, as in x=N,3,H,W", line);
        }
        *shape = '\0';
        json_object_set_new(inputs, line, json_string(shape + 1));
    }
    if (inputs != NULL) {
        json_object_set_new(body, "inputs", inputs);
    }
    return WEIR_OK;
}

/* "x FP32[-1,3,224,224]" of each. */
static char *ports_text(struct cli_call *call, const json_t *ports)
{
    char *text = weir_arena_strdup(call->arena, "");
    size_t i;
    json_t *port;
    json_array_foreach(ports, i, port)
    {
        text = weir_arena_printf(call->arena, "%s%s%s %s%s", text, i > 0 ? ", " : "",
                                 cli_text(call, port, "name"), cli_text(call, port, "datatype"),
                                 cli_text(call, port, "shape"));
    }
    return text;
}

static void print_version(struct cli_call *call, const json_t *version, const char *alias)
{
    static const char *const pictures[] = {
        [TRY_IT_UNKNOWN] = "unknown",
        [TRY_IT_PICTURE] = "yes: weir predict takes a picture",
        [TRY_IT_IMAGE] = "no: requests send tensors; --preprocess says how a picture becomes one",
        [TRY_IT_TENSOR] = "no: requests send tensors",
        [TRY_IT_TEXT] = "no: requests send texts",
    };

    const json_t *signature = json_object_get(version, "signature");
    size_t n_labels = json_array_size(json_object_get(signature, "labels"));
    printf("%s version %s%s%s: %s bytes, %s, run by %s\n", cli_text(call, version, "model"),
           cli_text(call, version, "version"), alias != NULL ? ", alias " : "",
           alias != NULL ? alias : "", cli_text(call, version, "bytes"),
           cli_text(call, signature, "format"), cli_text(call, signature, "executor"));
    printf("  why      %s\n", cli_text(call, signature, "why"));
    printf("  inputs   %s\n", ports_text(call, json_object_get(signature, "inputs")));
    printf("  outputs  %s\n", ports_text(call, json_object_get(signature, "outputs")));
    printf("  picture  %s\n", pictures[try_it_input_of(signature)]);
    const char *detector = json_string_value(json_object_get(version, "detector"));
    if (detector != NULL) {
        printf("  detector %s\n", detector);
    }
    const char *changes = json_string_value(json_object_get(version, "changes"));
    if (changes != NULL) {
        (void)fprintf(stderr, "weir: warning: %s\n", changes);
    }
    if (json_is_string(json_object_get(version, "golden"))) {
        printf("  golden   checked: it gave the expected answers\n");
    }
    if (n_labels > 0) {
        printf("  labels   %zu\n", n_labels);
    } else {
        printf("  labels   no: answers have numbers only; --labels names the classes\n");
    }
}

/* The file goes ahead of the model: one that is no JSON is found before many bytes travel. */
static weir_status put_golden(struct cli_call *call, const char *file, json_t *body,
                              struct weir_error *err)
{
    char *text, blob[WEIR_SHA256_TEXT_BYTES];
    size_t len;
    json_t *json;
    if (file == NULL) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_input_read(file, GOLDEN_MAX_BYTES, call->arena, &text, &len, err));
    WEIR_TRY(weir_json_parse(text, len, file, &json, err));
    json_decref(json);
    WEIR_TRY(weir_client_blob_put(call->client, file, blob, err));
    json_object_set_new(body, "golden", json_string(blob));
    return WEIR_OK;
}

/* A file of this machine, or of a run. */
static weir_status put_model(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct push_options *options = call->options;
    char blob[WEIR_SHA256_TEXT_BYTES], *run;
    if (options->run == NULL) {
        cli_progress_file(call, call->words[1]);
        WEIR_TRY(weir_client_model_put(call->client, call->words[1], blob, err));
        json_object_set_new(body, "blob", json_string(blob));
        return WEIR_OK;
    }
    WEIR_TRY(cli_find(call, &find_run, options->run, &run, err));
    json_object_set_new(body, "run", json_string(run));
    if (call->n_words > 1) {
        json_object_set_new(body, "artifact", json_string(call->words[1]));
    }
    return WEIR_OK;
}

static weir_status push(struct cli_call *call, json_t *body, json_t **out, struct weir_error *err)
{
    const struct push_options *options = call->options;
    char id[WEIR_UUID_BYTES];
    if (options->run == NULL && call->n_words < 2) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "weir model push %s: of which file? Name it, or with --run the run "
                              "that left it",
                              call->words[0]);
    }
    WEIR_TRY(read_labels(call, options->labels, body, err));
    WEIR_TRY(read_preprocess(call, options->preprocess, body, err));
    WEIR_TRY(read_inputs(options->inputs, body, err));
    WEIR_TRY(cli_connect(call, err));
    WEIR_TRY(put_golden(call, options->golden, body, err));
    WEIR_TRY(put_model(call, body, err));
    weir_uuid_make(id);
    json_object_set_new(body, "id", json_string(id));
    WEIR_TRY(cli_members(call, "-alias -project", NULL, body, err));
    weir_client_set_timeout(call->client, LOOK_MS);
    return weir_client_call_retry(call->client, "POST",
                                  cli_path1(call, "/api/v1/models/{}/versions", call->words[0]),
                                  body, PATIENCE_MS, out, err);
}

static weir_status run_push(struct cli_call *call, struct weir_error *err)
{
    const struct push_options *options = call->options;
    WEIR_AUTO(weir_json_auto_free) json_t *body = json_object(), *version = NULL;
    WEIR_TRY(push(call, body, &version, err));
    if (cli_is_json(call)) {
        cli_print_json(version);
    } else {
        print_version(call, version, options->alias);
    }
    return WEIR_OK;
}

const struct cli_command cli_model_push = {
    .name = "model push",
    .usage = "NAME FILE | NAME --run RUN [ARTIFACT] [--labels FILE] [--preprocess FILE] [--input "
             "NAME=SHAPE] [--golden FILE] [--alias NAME] "
             "[--project NAME]",
    .summary = "Make a version of a model file, ONNX or Weir's own, once it was looked at",
    .help =
        "The server loads the file apart, in a process with bounds, before it becomes a version: "
        "it says\nwhich executor will run the model and why, or refuses it and says what is "
        "missing. Size and\nsignature are the file's; --input gives an ONNX file that fixes the "
        "size of its pictures another\nshape, from which all others follow.",
    CLI_WORDS(1, 2),
    CLI_OPTIONS(push_options, push_options),
    .run = run_push,
};

/* ---- alias ----------------------------------------------------------------------------------- */

struct alias_options {
    struct cli_common common;
    bool is_deleted, is_forced;
};

static const struct weir_option alias_options[] = {
    CLI_COMMON_OPTIONS(alias_options),
    CLI_FLAG(alias_options, is_deleted, "delete", 0, "Take the name away"),
    CLI_FLAG(alias_options, is_forced, "force", 0,
             "With --delete: also if a deployment or an ION follows it"),
};

/* Of VERSION, which may be an alias, its number. */
static weir_status check_alias(struct cli_call *call, json_t *body, struct weir_error *err)
{
    const struct alias_options *options = call->options;
    int64_t version;
    if (options->is_deleted != (call->n_words == 2) ||
        (options->is_forced && !options->is_deleted)) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "usage: weir model alias NAME ALIAS VERSION, or NAME ALIAS --delete");
    }
    if (options->is_deleted) {
        return WEIR_OK;
    }
    WEIR_TRY(cli_model_version(call, call->words[0], call->words[2], &version, err));
    json_object_set_new(body, "version", json_integer((json_int_t)version));
    call->words[2] = weir_arena_printf(call->arena, "%lld", (long long)version);
    return WEIR_OK;
}

#define ALIAS "/api/v1/models/{0}/aliases/{1}"

const struct cli_command cli_model_alias = {
    .name = "model alias",
    .usage = "NAME ALIAS VERSION | NAME ALIAS --delete [--force]",
    .summary = "Give a version of a model a name, as in NAME@stable",
    .help = "A deployment keeps the version that the name stood for when it was deployed.",
    CLI_WORDS(2, 3),
    CLI_OPTIONS(alias_options, alias_options),
    CLI_VERBS({NULL, 2, 2, check_alias, .call = "DELETE " ALIAS, .query = "-force",
               .say = "{1}: deleted", .gives = "alias=1 deleted=true"},
              {NULL, 3, 3, check_alias, .call = "PUT " ALIAS, .body = "",
               .say = "{0}@{1} is version {2}"}),
};

/* ---- export ---------------------------------------------------------------------------------- */

struct export_options {
    struct cli_common common;
    char *format, *file;
    bool is_forced;
};

static const struct weir_option export_options[] = {
    CLI_COMMON_OPTIONS(export_options),
    WEIR_OPT(export_options, format, "format", 0, TEXT, "onnx", 0, 0, "onnx|stored",
             "ONNX; or the file as it is stored"),
    CLI_TEXT(export_options, file, "file", 'f', "FILE", "Where to put it (else NAME-VERSION.onnx)"),
    CLI_FLAG(export_options, is_forced, "force", 0, "Overwrite a file that is there"),
};

/* One of Weir's own files is made into ONNX by the worker, which knows the format; what goes wrong it
 * says itself. */
static weir_status run_worker(const char *from, const char *file, struct weir_error *err)
{
    int how = 0;
    pid_t pid = fork();
    if (pid < 0) {
        return weir_error_set_errno(err, errno, "cannot start weir-worker");
    }
    if (pid == 0) {
        struct weir_error reason;
        char *argv[] = {(char *)"weir-worker", (char *)"export", (char *)from,
                        (char *)"--output",    (char *)file,     NULL};
        weir_status status = cli_exec_beside("weir-worker", argv, &reason);
        (void)fprintf(stderr, "%s\n", reason.message);
        _exit(weir_status_exit(status));
    }
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(how) && WEXITSTATUS(how) == 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "weir-worker cannot write the model as ONNX (see above); --format "
                                "stored fetches the file as it is");
}

static weir_status convert(struct cli_call *call, const char *blob, const char *file,
                           struct weir_error *err)
{
    char *from = weir_arena_printf(call->arena, "%s.part", file);
    WEIR_TRY(weir_client_blob_get(call->client, blob, from, err));
    weir_status status = run_worker(from, file, err);
    (void)unlink(from);
    return status;
}

static weir_status export_to(struct cli_call *call, const json_t *record, const char *file,
                             struct weir_error *err)
{
    const struct export_options *options = call->options;
    const char *blob = cli_text(call, record, "blob");
    const char *format = cli_text(call, json_object_get(record, "signature"), "format");
    if (strcmp(options->format, "onnx") == 0 && strcmp(format, "onnx") != 0) {
        WEIR_TRY(convert(call, blob, file, err));
        printf(cli_is_json(call) ? "{\"file\": \"%s\"}\n" : "%s: made of one of Weir's own files\n",
               file);
        return WEIR_OK;
    }
    WEIR_TRY(weir_client_blob_get(call->client, blob, file, err));
    if (cli_is_json(call)) {
        cli_print_change(json_pack("{s:s,s:s}", "file", file, "sha256", blob));
    } else {
        printf("%s: %s bytes, SHA-256 %s\n", file, cli_text(call, record, "bytes"), blob);
    }
    return WEIR_OK;
}

static weir_status run_export(struct cli_call *call, struct weir_error *err)
{
    const struct export_options *options = call->options;
    char *name, *word;
    int64_t version;
    WEIR_AUTO(weir_json_auto_free) json_t *record = NULL;
    bool is_onnx = strcmp(options->format, "onnx") == 0;
    if (!is_onnx && strcmp(options->format, "stored") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "--format %.40s: there are onnx, stored",
                              options->format);
    }
    WEIR_TRY(cli_model_split(call, call->words[0], &name, &word, err));
    WEIR_TRY(cli_model_version(call, name, word, &version, err));
    WEIR_TRY(cli_model_record(call, name, version, &record, err));
    char *file = options->file != NULL
                     ? weir_arena_strdup(call->arena, options->file)
                     : weir_arena_printf(call->arena, "%s-%lld.%s", name, (long long)version,
                                         is_onnx ? "onnx" : "model");
    WEIR_TRY(cli_may_write(file, options->is_forced, err));
    return export_to(call, record, file, err);
}

const struct cli_command cli_model_export = {
    .name = "model export",
    .usage = "NAME[@v3|@ALIAS] [--format onnx|stored] [--file FILE]",
    .summary = "Write a version of a model as an ONNX file, or as it is stored",
    CLI_WORDS(1, 1),
    CLI_OPTIONS(export_options, export_options),
    .run = run_export,
};
