#include "train/worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "nn/peak.h"

/* Steps before the record: memory is touched and threads are warm after them. */
#define STEPS_BEFORE  3
#define PEAK_BUDGET_S 0.3

static bool is_wanted(const struct worker *worker)
{
    return worker->rank == 0 && worker->task->config->output.profile != NULL;
}

weir_status worker_trace_begin_step(struct worker *worker, struct weir_error *err)
{
    if (!is_wanted(worker)) {
        return WEIR_OK;
    }
    const struct weir_train_config *config = worker->task->config;
    if (worker->trace.n_steps++ == STEPS_BEFORE) {
        WEIR_TRY(weir_profile_create(
            worker->net, (int32_t)(config->output.profile_steps * config->loop.micro_batches),
            &worker->trace.profile, err));
    }
    worker->trace.step_begin_ns = weir_mono_ns();
    return WEIR_OK;
}

/** The peak of the type that is computed in; 0, and no shares, where there is none. */
static double peak_of_thread(const struct train_task *task)
{
    double flops = 0;
    enum weir_precision precision = WEIR_PRECISION_F32;
    struct weir_error ignored;
    if (weir_precision_parse(task->config->model.precision, &precision, &ignored) != WEIR_OK) {
        return 0;
    }
    enum weir_peak_type type = precision == WEIR_PRECISION_BF16 ? WEIR_PEAK_BF16 : WEIR_PEAK_F32;
    weir_status status = weir_peak_measure(type, task->n_threads, PEAK_BUDGET_S, &flops, &ignored);
    return status == WEIR_OK ? flops / task->n_threads : 0;
}

weir_status worker_trace_end_step(struct worker *worker, struct weir_error *err)
{
    const struct weir_train_config *config = worker->task->config;
    if (worker->trace.profile == NULL) {
        return WEIR_OK;
    }
    weir_profile_span(worker->trace.profile, "step", worker->trace.step_begin_ns, weir_mono_ns());
    if (worker->trace.n_steps < STEPS_BEFORE + config->output.profile_steps) {
        return WEIR_OK;
    }
    weir_status status = weir_profile_write(worker->trace.profile, config->output.profile,
                                            worker->rank, peak_of_thread(worker->task), err);
    weir_profile_destroy(worker->trace.profile);
    worker->trace.profile = NULL;
    WEIR_TRY(status);
    weir_log(WEIR_LOG_INFO, "trace_written", WEIR_KV_STR("file", config->output.profile));
    return WEIR_OK;
}
