#include "train/baseline.h"
#include "train/register.h"
#include "train/worker.h"

json_t *worker_metrics(const struct worker *worker)
{
    const struct train_state *state = &worker->state;
    json_t *metrics = json_pack("{s:f,s:f}", "loss", state->epoch_loss / state->epoch_seen,
                                "accuracy", state->epoch_correct / state->epoch_seen);
    if (worker->validation.score.n > 0) {
        json_object_set_new(metrics, "validation_loss", json_real(worker->validation.score.loss));
        json_object_set_new(metrics, "validation_accuracy",
                            json_real(worker->validation.score.accuracy));
        train_detect_write(&worker->validation.score.found, metrics);
    }
    return metrics;
}

/** The net's weights become those that are exported, after out_step steps. @param out_metrics  The
 *  caller's. */
static weir_status choose_weights(struct worker *worker, json_t **out_metrics, uint64_t *out_step,
                                  struct weir_error *err)
{
    if (train_keeps_best(worker->task->config)) {
        WEIR_TRY(worker_best_take(worker, out_metrics, out_step, err));
        const uint64_t epoch = *out_step / worker->task->steps_per_epoch;
        train_progress_note(&worker->reporting.progress, "kept", "epoch", (double)epoch);
        return WEIR_OK;
    }
    train_average_swap(&worker->average, worker->net);
    *out_metrics = worker_metrics(worker);
    *out_step = worker->state.step;
    return WEIR_OK;
}

/** How the model came about; nothing that differs between two runs of the same training. */
static char *training_text(const struct worker *worker, json_t *parameters, json_t *metrics,
                           uint64_t step, struct weir_arena *arena)
{
    const struct weir_train_config *config = worker->task->config;
    json_t *training = json_pack(
        "{s:O,s:O,s:I,s:I,s:I,s:s?,s:I,s:s}", "parameters", parameters, "metrics", metrics, "steps",
        (json_int_t)step, "workers", (json_int_t)config->group.workers, "parameter_servers",
        (json_int_t)config->group.parameter_servers, "dataset", config->report.dataset,
        "dataset_version", (json_int_t)config->report.dataset_version, "code_version",
        config->report.code_version != NULL ? config->report.code_version : "weir " WEIR_VERSION);
    char *text = weir_json_text(training, arena);
    json_decref(training);
    return text;
}

static weir_status finish(struct worker *worker, struct weir_arena *arena, struct weir_error *err)
{
    const struct train_task *task = worker->task;
    json_t *metrics = NULL;
    uint64_t step = 0;
    WEIR_TRY(choose_weights(worker, &metrics, &step, err));
    json_t *parameters = train_parameters(task);
    struct train_version version = {.file = task->config->output.file,
                                    .parameters = weir_json_text(parameters, arena),
                                    .metrics = weir_json_text(metrics, arena)};
    const char *training = training_text(worker, parameters, metrics, step, arena);
    json_decref(parameters);
    json_decref(metrics);
    char *baseline = NULL;
    WEIR_TRY(train_baseline(task, &worker->state.input, worker->net, arena, &baseline, err));
    version.baseline = baseline;
    const struct weir_net_file_info info = {.input = worker->state.input,
                                            .graph = weir_model_spec_text(task->spec),
                                            .labels = train_class_names(task->dataset, arena),
                                            .n_labels = weir_dataset_n_classes(task->dataset),
                                            .baseline = baseline,
                                            .training = training};
    WEIR_TRY(weir_net_file_save(task->config->output.file, worker->net, &info, err));
    if (task->config->report.model_name != NULL) {
        int64_t number = 0;
        WEIR_TRY(train_register(task->config, &version, &number, err));
        train_progress_registered(&worker->reporting.progress, task->config->report.model_name,
                                  number);
    }
    train_progress_done(&worker->reporting.progress, task->config->output.file);
    return WEIR_OK;
}

weir_status worker_finish(struct worker *worker, struct weir_error *err)
{
    WEIR_AUTO(weir_arena_fini) struct weir_arena arena;
    weir_arena_init(&arena, 0);
    return finish(worker, &arena, err);
}
