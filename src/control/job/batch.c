#include "control/job/batch.h"
#include "track/registry.h"

#include "control/deploy.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_CHARS 200

/* NAME and what stands behind "@"; *out_version is NULL without it. */
static weir_status split(struct control *control, const json_t *spec, const char *key,
                         char **out_name, char **out_version, struct weir_error *err)
{
    const char *text = json_string_value(json_object_get(spec, key));
    char *name = weir_arena_strdup(control->arena, text != NULL ? text : "");
    char *at = strchr(name, '@');
    if (at != NULL) {
        *at = '\0';
    }
    if (name[0] == '\0' || (at != NULL && at[1] == '\0') || strlen(name) > NAME_MAX_CHARS) {
        return weir_error_set(
            err, WEIR_ERR_INVALID, "$.spec.%s: \"%.80s\": expected NAME or NAME@v3%s", key,
            text != NULL ? text : "", strcmp(key, "dataset") != 0 ? " or NAME@ALIAS" : "");
    }
    *out_name = name;
    *out_version = at != NULL ? at + 1 : NULL;
    return WEIR_OK;
}

/* ---- model ----------------------------------------------------------------------------------- */

static weir_status find_model(struct control *control, struct weir_txn *txn, const json_t *spec,
                              const char *key, struct weir_model_version *out,
                              struct weir_error *err)
{
    char *name, *word, *place = weir_arena_printf(control->arena, "$.spec.%s", key);
    int64_t number = 0;
    struct weir_model model;
    struct weir_share_model versions;
    WEIR_TRY(split(control, spec, key, &name, &word, err));
    weir_status status = control_share_model(txn, name, control->arena, &model, &versions, err);
    if (status == WEIR_OK && word != NULL) {
        return weir_share_version_read(&versions, word, strlen(word), place, &number, err) ==
                       WEIR_OK
                   ? weir_model_version_get(txn, name, number, control->arena, out, err)
                   : err->status;
    }
    if (status == WEIR_OK) {
        status = weir_model_version_get(txn, name, 0, control->arena, out, err);
    }
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "%s: ", place);
}

static weir_status find_servable(struct control *control, struct weir_txn *txn, const json_t *spec,
                                 const char *key, struct weir_model_version *out,
                                 struct weir_error *err)
{
    WEIR_TRY(find_model(control, txn, spec, key, out, err));
    return weir_version_check_servable(out, err);
}

static bool is_classifier(const json_t *signature)
{
    const char *kind = json_string_value(json_object_get(signature, "output_kind"));
    return kind != NULL && (strcmp(kind, "logits") == 0 || strcmp(kind, "probabilities") == 0);
}

static weir_status check_signature(const struct weir_model_version *version, const json_t *spec,
                                   const char *key, const json_t *signature, struct weir_error *err)
{
    const char *format = json_string_value(json_object_get(spec, "format"));
    if (signature == NULL) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.%s: version %lld of %s was registered before files were "
                              "looked at: nobody knows what it takes; push its file again (weir "
                              "model get, weir model push)",
                              key, (long long)version->version, version->model);
    }
    if (!json_is_object(json_object_get(signature, "picture")) ||
        json_array_size(json_object_get(signature, "inputs")) != 1) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.%s: version %lld of %s takes no picture, and a dataset "
                              "has pictures: how one becomes its input is said by `weir model push "
                              "--preprocess`",
                              key, (long long)version->version, version->model);
    }
    if (format != NULL && strcmp(format, "csv") == 0 &&
        (!is_classifier(signature) || json_is_true(json_object_get(spec, "values")))) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "$.spec.format: csv has classes and probabilities only: take jsonl "
                              "for values");
    }
    return WEIR_OK;
}

static weir_status pin_model(struct control *control, struct weir_txn *txn, json_t *spec,
                             const char *key, json_t *pinned, struct weir_error *err)
{
    struct weir_model_version version;
    bool is_live = strcmp(key, "live") == 0;
    WEIR_TRY(find_servable(control, txn, spec, key, &version, err));
    WEIR_AUTO(weir_json_auto_free)
    json_t *signature = version.signature != NULL ? json_loads(version.signature, 0, NULL) : NULL;
    WEIR_TRY(check_signature(&version, spec, key, signature, err));
    json_object_set_new(spec, key,
                        json_sprintf("%s@v%lld", version.model, (long long)version.version));
    json_object_set_new(pinned, is_live ? "live_blob" : "blob", json_string(version.blob));
    json_object_set(pinned, is_live ? "live_signature" : "signature", signature);
    return WEIR_OK;
}

/* ---- dataset --------------------------------------------------------------------------------- */

static weir_status find_version(struct control *control, struct weir_txn *txn, const char *name,
                                const char *word, struct weir_dataset_version *version,
                                struct weir_error *err)
{
    char *end;
    const char *digits = word + (word[0] == 'v');
    long long number = strtoll(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || number < 1) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.dataset: version \"%.40s\": expected a number, as in "
                              "%.60s@v2",
                              word, name);
    }
    weir_status status = weir_dataset_version_get(txn, name, number, control->arena, version, err);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "$.spec.dataset: ");
}

static weir_status pin_dataset(struct control *control, struct weir_txn *txn, json_t *spec,
                               struct control_batch *out, struct weir_error *err)
{
    char *name, *word;
    struct weir_dataset dataset;
    struct weir_dataset_version version;
    WEIR_TRY(split(control, spec, "dataset", &name, &word, err));
    WEIR_TRY(control_dataset_find(control, txn, "dataset", name, &dataset, &version, err));
    if (word != NULL) {
        WEIR_TRY(find_version(control, txn, name, word, &version, err));
    }
    out->dataset = dataset.name;
    out->dataset_version = version.version;
    json_object_set_new(spec, "dataset",
                        json_sprintf("%s@v%lld", dataset.name, (long long)version.version));
    json_object_set_new(out->pinned, "manifest", json_string(version.blob));
    json_object_set_new(out->pinned, "data", json_string(dataset.path));
    json_object_set_new(out->pinned, "dataset_kind",
                        json_string(dataset.kind != NULL ? dataset.kind : "folder"));
    json_object_set_new(out->datasets, dataset.name, json_string(dataset.path));
    return WEIR_OK;
}

weir_status control_batch_resolve(struct control *control, struct weir_txn *txn, const char *run,
                                  json_t *spec, struct control_batch *out, struct weir_error *err)
{
    *out =
        (struct control_batch){.pinned = json_pack("{s:s}", "run", run), .datasets = json_object()};
    WEIR_TRY(pin_model(control, txn, spec, "model", out->pinned, err));
    if (json_object_get(spec, "live") != NULL) {
        WEIR_TRY(pin_model(control, txn, spec, "live", out->pinned, err));
    }
    WEIR_TRY(pin_dataset(control, txn, spec, out, err));
    out->parameters = weir_json_text(spec, control->arena);
    return WEIR_OK;
}
