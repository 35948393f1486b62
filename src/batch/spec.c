#include "batch/spec.h"

#include "base/options.h"

#include <string.h>

#define SPEC_MAX_BYTES ((size_t)8 << 20)

static const struct weir_option members[] = {
    WEIR_OPT_JSON(batch_spec, model, "model", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, dataset, "dataset", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, split, "split", TEXT, 0, "train", 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, format, "format", TEXT, 0, "jsonl", 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, output, "output", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, tasks, "tasks", INT, 0, "1", 1, 1024, ""),
    WEIR_OPT_JSON(batch_spec, rank, "rank", INT, 0, "0", 0, 1023, ""),
    WEIR_OPT_JSON(batch_spec, top, "top", INT, 0, "1", 1, 1000, ""),
    WEIR_OPT_JSON(batch_spec, batch_size, "batch-size", INT, 0, "16", 1, 1024, ""),
    WEIR_OPT_JSON(batch_spec, shard_size, "shard-size", INT, 0, "1000", 1, 1000000, ""),
    WEIR_OPT_JSON(batch_spec, threads, "threads", INT, 0, "1", 1, 4096, ""),
    WEIR_OPT_JSON(batch_spec, values, "values", BOOL, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, blob, "blob", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, manifest, "manifest", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, data, "data", TEXT, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, dataset_kind, "dataset-kind", TEXT, 0, "folder", 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, signature, "signature", JSON, WEIR_OPTION_REQUIRED, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, live, "live", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, live_blob, "live-blob", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, live_signature, "live-signature", JSON, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, alpha, "alpha", F64, 0, "0.05", 0.000001, 0.5, ""),
    WEIR_OPT_JSON(batch_spec, server, "server", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, token_file, "token-file", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, ca_file, "ca-file", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, job, "job", TEXT, 0, NULL, 0, 0, ""),
    WEIR_OPT_JSON(batch_spec, run, "run", TEXT, 0, NULL, 0, 0, ""),
};

static weir_status check(const struct batch_spec *spec, struct weir_error *err)
{
    if (spec->rank >= spec->tasks) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.rank: expected less than $.tasks");
    }
    if (strcmp(spec->format, "jsonl") != 0 && strcmp(spec->format, "csv") != 0) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.format: expected jsonl or csv");
    }
    if (spec->output == NULL && spec->job == NULL) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.output: expected a folder");
    }
    return WEIR_OK;
}

weir_status batch_spec_load(const char *path, struct weir_arena *arena, json_t **out_root,
                            struct batch_spec *out, struct weir_error *err)
{
    json_t *root;
    WEIR_TRY(weir_json_load(path, SPEC_MAX_BYTES, &root, err));
    memset(out, 0, sizeof *out);
    weir_status status =
        weir_options_read(members, WEIR_ARRAY_LEN(members), root, "$", NULL, arena, out, err);
    if (status == WEIR_OK) {
        status = check(out, err);
    }
    if (status != WEIR_OK) {
        json_decref(root);
        return weir_error_prefix(err, "%s: ", path);
    }
    *out_root = root;
    return WEIR_OK;
}
