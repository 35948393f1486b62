#include "batch/manifest.h"

#include "batch/row.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

#define IDENTITY_FILE "batch.json"
#define MANIFEST_FILE "manifest.json"

static weir_status write_json(struct batch_results *results, const char *name, json_t *value,
                              struct weir_error *err)
{
    WEIR_AUTO(weir_auto_free) char *text = json_dumps(value, JSON_INDENT(1));
    json_decref(value);
    if (text == NULL) {
        return weir_error_set(err, WEIR_ERR_NOMEM, "no memory for %s", name);
    }
    return batch_results_write(results, name, text, strlen(text), err);
}

/* ---- identity -------------------------------------------------------------------------------- */

static json_t *identity_of(const struct batch_spec *spec, int64_t n_files)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s,s:I,s:b,s:s,s:I,s:I,s:I}", "model", spec->model, "blob",
                     spec->blob, "dataset", spec->dataset, "manifest", spec->manifest, "split",
                     spec->split, "top", (json_int_t)spec->top, "values", spec->values, "format",
                     spec->format, "batch_size", (json_int_t)spec->batch_size, "shard_size",
                     (json_int_t)spec->shard_size, "n_files", (json_int_t)n_files);
}

static weir_status compare(struct batch_results *results, const json_t *wanted,
                           struct weir_error *err)
{
    struct weir_buf text;
    json_t *there = NULL, *value;
    const char *key;
    weir_buf_init(&text, 1 << 20);
    weir_status status = batch_results_read(results, IDENTITY_FILE, &text, err);
    if (status == WEIR_OK) {
        status = weir_json_parse(text.data, text.len, IDENTITY_FILE, &there, err);
    }
    weir_buf_fini(&text);
    WEIR_TRY(status);
    json_object_foreach((json_t *)wanted, key, value)
    {
        if (!json_equal(value, json_object_get(there, key))) {
            status = weir_error_set(
                err, WEIR_ERR_CONFLICT,
                "%.300s has the results of another batch prediction (its "
                "batch.json differs in \"%s\"): take another folder, or empty "
                "it",
                results->spec->output != NULL ? results->spec->output : "the job", key);
            break;
        }
    }
    json_decref(there);
    return status;
}

weir_status batch_identity_check(struct batch_results *results, int64_t n_files,
                                 struct weir_error *err)
{
    json_t *wanted = identity_of(results->spec, n_files);
    if (!batch_results_has(results, IDENTITY_FILE)) {
        return write_json(results, IDENTITY_FILE, wanted, err);
    }
    weir_status status = compare(results, wanted, err);
    json_decref(wanted);
    return status;
}

/* ---- manifest -------------------------------------------------------------------------------- */

int64_t batch_shards_there(const struct batch_results *results, const struct batch_shards *shards)
{
    int64_t n_there = 0;
    for (int64_t i = 0; i < batch_shards_count(shards); i++) {
        char name[BATCH_SHARD_NAME_BYTES];
        n_there +=
            batch_results_has(results, batch_shard_name(i, results->spec->format, name)) ? 1 : 0;
    }
    return n_there;
}

static weir_status describe(struct batch_results *results, const struct batch_shards *shards,
                            int64_t i_shard, struct weir_buf *bytes, json_t *list,
                            int64_t *n_errors_sum, struct weir_error *err)
{
    char name[BATCH_SHARD_NAME_BYTES], digest[WEIR_SHA256_TEXT_BYTES];
    int64_t first, n, n_rows = 0, n_errors = 0;
    bool is_csv = strcmp(results->spec->format, "csv") == 0;
    batch_shard_files(shards, i_shard, &first, &n);
    batch_shard_name(i_shard, results->spec->format, name);
    WEIR_TRY(batch_results_read(results, name, bytes, err));
    weir_status status = row_count(is_csv, bytes->data, bytes->len, &n_rows, &n_errors, err);
    if (status != WEIR_OK) {
        return weir_error_prefix(err, "%s: ", name);
    }
    if (n_rows != n) {
        return weir_error_set(
            err, WEIR_ERR_CORRUPT,
            "%s has %lld rows in place of %lld: remove it, and start the job again", name,
            (long long)n_rows, (long long)n);
    }
    weir_sha256(bytes->data, bytes->len, digest);
    json_array_append_new(list, json_pack("{s:s,s:I,s:s,s:I,s:I}", "name", name, "bytes",
                                          (json_int_t)bytes->len, "sha256", digest, "n_rows",
                                          (json_int_t)n_rows, "n_errors", (json_int_t)n_errors));
    *n_errors_sum += n_errors;
    return WEIR_OK;
}

weir_status batch_manifest_write(struct batch_results *results, const struct batch_shards *shards,
                                 int64_t *out_n_missing, struct weir_error *err)
{
    const struct batch_spec *spec = results->spec;
    int64_t n_shards = batch_shards_count(shards), n_errors = 0;
    weir_status status = WEIR_OK;
    struct weir_buf bytes;
    *out_n_missing = n_shards - batch_shards_there(results, shards);
    if (*out_n_missing > 0 || batch_results_has(results, MANIFEST_FILE)) {
        return WEIR_OK;
    }
    json_t *list = json_array();
    weir_buf_init(&bytes, RESULTS_FILE_MAX_BYTES);
    for (int64_t i = 0; i < n_shards && status == WEIR_OK; i++) {
        status = describe(results, shards, i, &bytes, list, &n_errors, err);
    }
    weir_buf_fini(&bytes);
    if (status != WEIR_OK) {
        json_decref(list);
        return status;
    }
    return write_json(results, MANIFEST_FILE,
                      json_pack("{s:s,s:s,s:s,s:I,s:I,s:o}", "model", spec->model, "dataset",
                                spec->dataset, "format", spec->format, "n_files",
                                (json_int_t)shards->n_files, "n_errors", (json_int_t)n_errors,
                                "shards", list),
                      err);
}
