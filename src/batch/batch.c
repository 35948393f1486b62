#include "batch/batch.h"

#include "batch/input.h"
#include "batch/manifest.h"
#include "batch/model.h"
#include "batch/program.h"
#include "batch/progress.h"
#include "batch/row.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

#define CALL_TIMEOUT_MS 60000

/** A task, with what it has open. */
struct batch {
    const struct batch_spec *spec;
    struct weir_client *client;
    struct batch_input *input;
    struct batch_model *model;
    struct batch_results results;
    struct batch_shards shards;
    struct row_form form;
    struct batch_progress progress;
    struct weir_buf text; /**< Of the shard that is being made. */
};

/* ---- one shard ------------------------------------------------------------------------------- */

/** Pictures that are computed together, with those between them that cannot be. */
struct group {
    int64_t first, n; /**< Files. */
    int64_t n_in;     /**< Of those, in the model's input. */
    char **errors;    /**< By file; NULL: it is in the input. */
};

static weir_status put_one(struct batch *batch, int64_t i_file, int64_t place,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_image_fini) struct weir_image image = {0};
    WEIR_TRY(batch_input_read(batch->input, i_file, &image, err));
    return batch_model_put(batch->model, place, &image, err);
}

/* As many files as the batch has room for, up to `end`. */
static weir_status take_group(struct batch *batch, int64_t first, int64_t end,
                              struct weir_arena *arena, struct group *out, struct weir_error *err)
{
    int64_t n = WEIR_MIN(batch_model_batch(batch->model), end - first);
    struct group group = {.first = first, .errors = WEIR_ARENA_ARRAY(arena, (size_t)n + 1, char *)};
    while (group.n < n) {
        struct weir_error why = {0};
        weir_status status = put_one(batch, first + group.n, group.n_in, &why);
        if (status != WEIR_OK && !batch_input_is_row(status)) {
            *err = why;
            return status;
        }
        group.errors[group.n++] = status != WEIR_OK ? weir_arena_strdup(arena, why.message) : NULL;
        group.n_in += status == WEIR_OK;
    }
    *out = group;
    return WEIR_OK;
}

static weir_status write_group(struct batch *batch, const struct group *group,
                               struct weir_arena *arena, int64_t *n_errors, struct weir_error *err)
{
    struct weir_tensor *const *outputs = NULL;
    char name[BATCH_NAME_BYTES];
    if (group->n_in > 0) {
        WEIR_TRY(batch_model_run(batch->model, group->n_in, &outputs, err));
    }
    for (int64_t i = 0, place = 0; i < group->n; i++) {
        batch_input_name(batch->input, group->first + i, name);
        if (group->errors[i] != NULL) {
            row_write_error(&batch->form, name, group->errors[i], &batch->text);
            ++*n_errors;
        } else {
            row_write(&batch->form, name, outputs, place++, arena, &batch->text);
        }
    }
    return batch->text.status == WEIR_OK
               ? WEIR_OK
               : weir_error_set(err, batch->text.status,
                                "a shard is over %zu MiB: take a smaller shard_size",
                                RESULTS_FILE_MAX_BYTES >> 20);
}

static weir_status make_shard(struct batch *batch, int64_t i_shard, struct weir_error *err)
{
    char name[BATCH_SHARD_NAME_BYTES];
    int64_t first, n, n_errors = 0;
    weir_status status = WEIR_OK;
    batch_shard_files(&batch->shards, i_shard, &first, &n);
    batch_shard_name(i_shard, batch->spec->format, name);
    weir_buf_reset(&batch->text);
    row_write_head(&batch->form, &batch->text);
    for (int64_t at = first; at < first + n && status == WEIR_OK;) {
        struct weir_arena arena;
        struct group group = {0};
        weir_arena_init(&arena, 0);
        status = take_group(batch, at, first + n, &arena, &group, err);
        if (status == WEIR_OK) {
            status = write_group(batch, &group, &arena, &n_errors, err);
        }
        weir_arena_fini(&arena);
        at += group.n;
    }
    if (status == WEIR_OK) {
        status = batch_results_write(&batch->results, name, batch->text.data, batch->text.len, err);
    }
    WEIR_TRY(status);
    weir_log(WEIR_LOG_DEBUG, "shard_made", WEIR_KV_STR("name", name), WEIR_KV_INT("files", n),
             WEIR_KV_INT("errors", n_errors));
    batch_progress_add(&batch->progress, n, n_errors);
    return WEIR_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static weir_status open_batch(struct batch *batch, struct weir_error *err)
{
    const struct batch_spec *spec = batch->spec;
    if (spec->server != NULL) {
        WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                               .token_file = spec->token_file,
                                                               .ca_file = spec->ca_file,
                                                               .timeout_ms = CALL_TIMEOUT_MS},
                                  &batch->client, err));
    }
    WEIR_TRY(batch_input_open(spec, batch->client, &batch->input, err));
    batch->shards = (struct batch_shards){.n_files = batch_input_n_files(batch->input),
                                          .shard_size = spec->shard_size};
    if (batch_shards_count(&batch->shards) > BATCH_SHARDS_MAX) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "%lld files make more than %d shards of %lld: take a larger "
                              "shard_size",
                              (long long)batch->shards.n_files, BATCH_SHARDS_MAX,
                              (long long)spec->shard_size);
    }
    WEIR_TRY(batch_results_open(spec, batch->client, &batch->results, err));
    WEIR_TRY(batch_identity_check(&batch->results, batch->shards.n_files, err));
    batch_progress_start(&batch->progress, &batch->results, &batch->shards);
    return WEIR_OK;
}

static bool is_due(const struct batch *batch, int64_t i_shard)
{
    char name[BATCH_SHARD_NAME_BYTES];
    return batch_shard_task(i_shard, batch->spec->tasks) == batch->spec->rank &&
           !batch_results_has(&batch->results,
                              batch_shard_name(i_shard, batch->spec->format, name));
}

/* The model is loaded only if there is something left to do. */
static weir_status make_due(struct batch *batch, struct weir_error *err)
{
    for (int64_t i = 0; i < batch_shards_count(&batch->shards); i++) {
        if (!is_due(batch, i)) {
            continue;
        }
        if (batch->model == NULL) {
            WEIR_TRY(batch_model_open(batch->spec, batch->client, &batch->model, err));
            batch->form = (struct row_form){.signature = batch_model_signature(batch->model),
                                            .is_csv = strcmp(batch->spec->format, "csv") == 0,
                                            .has_values = batch->spec->values,
                                            .n_top = batch->spec->top};
        }
        WEIR_TRY(make_shard(batch, i, err));
    }
    return WEIR_OK;
}

static weir_status finish(struct batch *batch, struct weir_error *err)
{
    int64_t n_missing = 0;
    WEIR_TRY(batch_results_look(&batch->results, err));
    WEIR_TRY(batch_manifest_write(&batch->results, &batch->shards, &n_missing, err));
    batch_progress_tell(&batch->progress);
    weir_log(WEIR_LOG_INFO, "batch_done", WEIR_KV_INT("files", batch->progress.n_files),
             WEIR_KV_INT("errors", batch->progress.n_errors),
             WEIR_KV_INT("shards_of_others_missing", n_missing));
    return WEIR_OK;
}

weir_status batch_task_run(const struct batch_spec *spec, struct weir_error *err)
{
    struct batch batch = {.spec = spec};
    weir_buf_init(&batch.text, RESULTS_FILE_MAX_BYTES);
    weir_status status = open_batch(&batch, err);
    if (status == WEIR_OK) {
        status = make_due(&batch, err);
    }
    if (status == WEIR_OK) {
        status = finish(&batch, err);
    }
    batch_results_close(&batch.results);
    batch_model_close(batch.model);
    batch_input_close(batch.input);
    if (batch.client != NULL) {
        weir_client_close(batch.client);
    }
    weir_buf_fini(&batch.text);
    return status;
}

/* ---- program --------------------------------------------------------------------------------- */

int weir_batch_main(int argc, char **argv)
{
    return batch_program(argc, argv, "batch-predict", "What to predict (spec.json)",
                         batch_task_run);
}
