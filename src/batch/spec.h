/**
 * Spec of a task of a batch prediction (spec.json of a job of kind `batch`): what the user wrote
 * (framework/batch.c), and what the server found when it made the job.
 *
 *     {"model": "digits@v3", "dataset": "scans@v2", "tasks": 4, "rank": 1, "top": 5, …,
 *      "blob": "<sha256>", "signature": {…},
 *      "data": "/srv/scans", "dataset_kind": "folder", "manifest": "<sha256>",
 *      "server": "https://…", "token_file": "token", "job": "…", "run": "…"}
 *
 * "blob" is the model's file, "manifest" the list of the dataset version's files; both are fetched from
 * the server. "output" is a folder; without it the results go to the server.
 */
#ifndef WEIR_BATCH_SPEC_H
#define WEIR_BATCH_SPEC_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stdbool.h>

struct batch_spec {
    char *model, *dataset, *split, *format, *output;
    int64_t tasks, rank, top, batch_size, shard_size, threads;
    bool values;
    char *blob, *manifest, *data, *dataset_kind;
    const json_t *signature;
    /* Of a measurement (measure.h): what the model is compared with; NULL: nothing. */
    char *live, *live_blob;
    const json_t *live_signature;
    double alpha;
    char *server, *token_file, *ca_file, *job, *run;
    char *onnxruntime; /**< Library; NULL: found. Of flag or environment. */
};

/**
 * Text lives in the arena. *out_root is a reference that the spec borrows from.
 * @return NOT_FOUND, IO; INVALID with the place of what is wrong.
 */
weir_status batch_spec_load(const char *path, struct weir_arena *arena, json_t **out_root,
                            struct batch_spec *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
