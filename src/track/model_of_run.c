#include "track/model_of_run.h"

#include "base/json.h"
#include "track/run.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)60 << 10)

/* How good a file is as the one to serve: less is better; 0: it is none. */
static int rank_of(const char *path)
{
    static const char *const names[] = {"model.onnx", ".onnx", "model.safetensors", ".safetensors"};
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(name);
    int depth = 0;
    for (const char *c = path; *c != '\0'; c++) {
        depth += *c == '/';
    }
    for (int i = 0; i < (int)WEIR_ARRAY_LEN(names); i++) {
        size_t n = strlen(names[i]);
        bool fits = names[i][0] == '.' ? len > n && strcmp(name + len - n, names[i]) == 0
                                       : strcmp(name, names[i]) == 0;
        if (fits) {
            return 1 + i * 1000 + WEIR_MIN(depth, 999);
        }
    }
    return 0;
}

weir_status weir_model_of_run_find(struct weir_txn *txn, const char *run, const char *path,
                                   struct weir_arena *arena, struct weir_artifact *out,
                                   const char **out_why, struct weir_error *err)
{
    struct weir_artifact *files;
    size_t n;
    int best = 0;
    WEIR_TRY(weir_artifact_list_files(txn, run, path, WEIR_MODEL_OF_RUN_FILES_MAX, arena, &files,
                                      &n, err));
    for (size_t i = 0; i < n; i++) {
        int rank = rank_of(files[i].path);
        if (rank > 0 && (best == 0 || rank < best)) {
            *out = files[i];
            best = rank;
        }
    }
    *out_why = best > 0 ? NULL
               : n == 0 ? "there is no artifact where it is said to come from"
                        : "among its artifacts is no ONNX or safetensors file";
    return WEIR_OK;
}

/* Takes the reference. */
static char *text_of(json_t *object, struct weir_arena *arena)
{
    char *text = weir_json_text(object, arena);
    json_decref(object);
    return text != NULL && strlen(text) <= TEXT_MAX_BYTES ? text : NULL;
}

static weir_status take_metrics(struct weir_txn *txn, const char *run, struct weir_arena *arena,
                                struct weir_model_version *version, struct weir_error *err)
{
    struct weir_metric *metrics;
    size_t n;
    WEIR_TRY(weir_metrics_latest(txn, run, arena, &metrics, &n, err));
    json_t *object = json_object();
    for (size_t i = 0; i < n; i++) {
        if (isfinite(metrics[i].value)) {
            json_object_set_new(object, metrics[i].key, json_real(metrics[i].value));
        }
    }
    version->metrics = text_of(object, arena);
    return WEIR_OK;
}

static bool has(const struct weir_tag *tags, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tags[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

/* Those that the record has, in their own types, and what its program added, as text. */
static weir_status take_parameters(struct weir_txn *txn, const struct weir_run *run,
                                   struct weir_arena *arena, struct weir_model_version *version,
                                   struct weir_error *err)
{
    struct weir_tag *own, *all;
    size_t n_own, n;
    int64_t number;
    WEIR_TRY(weir_run_number(txn, run->id, &number, err));
    WEIR_TRY(weir_run_parameters(txn, number, arena, &all, &n, err));
    weir_run_parameters_of(run->parameters, arena, &own, &n_own);
    json_t *object = run->parameters != NULL ? json_loads(run->parameters, 0, NULL) : NULL;
    object = object != NULL ? object : json_object();
    for (size_t i = 0; i < n; i++) {
        if (!has(own, n_own, all[i].key)) {
            json_object_set_new(object, all[i].key, json_string(all[i].value));
        }
    }
    version->parameters = text_of(object, arena);
    return WEIR_OK;
}

weir_status weir_model_of_run_describe(struct weir_txn *txn, const struct weir_run *run,
                                       struct weir_arena *arena, struct weir_model_version *version,
                                       struct weir_error *err)
{
    version->run = run->id;
    if (version->metrics == NULL) {
        WEIR_TRY(take_metrics(txn, run->id, arena, version, err));
    }
    if (version->parameters == NULL) {
        WEIR_TRY(take_parameters(txn, run, arena, version, err));
    }
    if (version->dataset == NULL) {
        version->dataset = run->dataset;
        version->dataset_version = run->dataset_version;
    }
    if (version->code_version == NULL) {
        version->code_version = run->code_version;
    }
    return weir_arena_check(arena, "the model of a run", err);
}
