/*
 * --keep best: the weights of the epoch that did best on the validation pictures, as a model file
 * in the checkpoints' folder. All that is known of that epoch stands in the file, so that a
 * training that was killed, or goes on with another worker 0, needs nothing else.
 */
#include "base/json.h"
#include "base/log.h"
#include "train/worker.h"

#include <string.h>

struct best {
    struct weir_net_file *file;
    json_t *facts; /**< {"identity": text, "step": number, "metrics": object} */
};

static const char *best_path(const struct worker *worker, struct weir_arena *arena)
{
    return weir_arena_printf(arena, "%s/best.safetensors", worker->task->config->checkpoint.dir);
}

static void best_close(struct best *best)
{
    json_decref(best->facts);
    weir_net_file_close(best->file);
    *best = (struct best){.file = NULL};
}

/** Of this training and no other. Nothing is left on error. */
static weir_status best_open(const struct worker *worker, const char *path, struct best *out,
                             struct weir_error *err)
{
    *out = (struct best){.file = NULL};
    WEIR_TRY(weir_net_file_open(path, &out->file, err));
    const char *text = weir_net_file_info(out->file)->training;
    weir_status status =
        text == NULL ? WEIR_OK : weir_json_parse(text, strlen(text), path, &out->facts, err);
    const char *identity = json_string_value(json_object_get(out->facts, "identity"));
    if (status == WEIR_OK && (identity == NULL || strcmp(identity, worker->task->identity) != 0 ||
                              !json_is_object(json_object_get(out->facts, "metrics")))) {
        status = weir_error_set(err, WEIR_ERR_CONFLICT, "%s belongs to another training", path);
    }
    if (status != WEIR_OK) {
        best_close(out);
    }
    return status;
}

/** More right answers; as many, and a smaller loss. */
static bool is_better(const struct train_score *score, const json_t *metrics)
{
    double accuracy = json_real_value(json_object_get(metrics, "validation_accuracy"));
    double loss = json_real_value(json_object_get(metrics, "validation_loss"));
    return score->accuracy > accuracy || (score->accuracy >= accuracy && score->loss < loss);
}

static weir_status save(const struct worker *worker, const char *path, struct weir_arena *arena,
                        struct weir_error *err)
{
    const struct train_task *task = worker->task;
    json_t *facts = json_pack("{s:s,s:I,s:o}", "identity", task->identity, "step",
                              (json_int_t)worker->state.step, "metrics", worker_metrics(worker));
    const struct weir_net_file_info info = {.input = worker->state.input,
                                            .graph = weir_model_spec_text(task->spec),
                                            .labels = train_class_names(task->dataset, arena),
                                            .n_labels = weir_dataset_n_classes(task->dataset),
                                            .training = weir_json_text(facts, arena)};
    json_decref(facts);
    return weir_net_file_save(path, worker->net, &info, err);
}

static weir_status offer(struct worker *worker, struct weir_arena *arena, struct weir_error *err)
{
    struct best best;
    struct weir_error why = {0};
    const char *path = best_path(worker, arena);
    weir_status status = best_open(worker, path, &best, &why);
    worker->validation.is_best = true;
    if (status == WEIR_OK) {
        worker->validation.is_best =
            is_better(&worker->validation.score, json_object_get(best.facts, "metrics"));
        best_close(&best);
    } else if (status == WEIR_ERR_CORRUPT || status == WEIR_ERR_INVALID) {
        weir_log(WEIR_LOG_WARN, "best_replaced", WEIR_KV_STR("why", why.message));
    } else if (status != WEIR_ERR_NOT_FOUND && status != WEIR_ERR_CONFLICT) {
        return weir_error_set(err, status, "%s", why.message);
    }
    return worker->validation.is_best ? save(worker, path, arena, err) : WEIR_OK;
}

weir_status worker_best_offer(struct worker *worker, struct weir_error *err)
{
    if (worker->rank != 0 || !train_keeps_best(worker->task->config)) {
        return WEIR_OK;
    }
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return offer(worker, &arena, err);
}

weir_status worker_best_take(struct worker *worker, json_t **out_metrics, uint64_t *out_step,
                             struct weir_error *err)
{
    struct weir_arena arena;
    struct best best;
    struct weir_net_import import;
    weir_arena_init(&arena, 0);
    const char *path = best_path(worker, &arena);
    weir_status status = best_open(worker, path, &best, err);
    if (status == WEIR_OK) {
        status = weir_net_file_import(path, worker->net, &import, err);
        *out_metrics = json_incref(json_object_get(best.facts, "metrics"));
        *out_step = (uint64_t)json_integer_value(json_object_get(best.facts, "step"));
        best_close(&best);
    }
    weir_arena_fini(&arena);
    return status == WEIR_OK ? WEIR_OK : weir_error_prefix(err, "the weights of the best epoch: ");
}
