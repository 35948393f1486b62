#include "train/score.h"

#include "train/fill.h"
#include "train/task.h"

enum {
    SCORE_LOSS,
    SCORE_CORRECT,
    SCORE_N,
    SCORE_DETECT,
    SCORE_COUNT = SCORE_DETECT + TRAIN_DETECT_COUNTS
};

static weir_status measure_batch(struct weir_net *net, const struct train_score_config *config,
                                 const struct weir_batch *batch, double sums[SCORE_COUNT],
                                 struct weir_error *err)
{
    struct weir_step_result result = {0};
    (void)train_fill(net, config->dataset, batch, config->input->shape, 0);
    weir_status status = weir_net_forward(net, (int32_t)batch->n_slots, &result);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "measuring: %s", weir_status_text(status));
    }
    if (result.n_labelled > 0) {
        sums[SCORE_LOSS] += result.loss * result.n_labelled;
        sums[SCORE_CORRECT] += result.n_correct;
        sums[SCORE_N] += result.n_labelled;
    }
    for (uint32_t i = 0; i < batch->n_slots; i++) {
        if (weir_net_labels(net)[i] >= 0) {
            WEIR_TRY(train_detect_count(net, config->dataset, i, batch->samples[i],
                                        sums + SCORE_DETECT, err));
        }
    }
    return WEIR_OK;
}

weir_status train_score_measure(struct weir_net *net, const struct train_score_config *config,
                                struct train_score *out, struct weir_error *err)
{
    int size = config->comm != NULL ? weir_comm_n_workers(config->comm) : 1;
    struct weir_loader_config loading = {
        .input = train_data_input(config->input),
        .batch = (uint32_t)(weir_net_batch(net) * size),
        .rank = config->comm != NULL ? (uint32_t)weir_comm_rank(config->comm) : 0,
        .size = (uint32_t)size,
        .n_epochs = 1,
        .tail = WEIR_TAIL_PAD,
        .n_threads = config->n_threads};
    struct weir_loader *loader = NULL;
    struct weir_batch batch;
    double sums[SCORE_COUNT] = {0};
    WEIR_TRY(weir_loader_create(config->dataset, &loading, &loader, err));
    weir_status status;
    while ((status = weir_loader_next(loader, &batch, err)) == WEIR_OK) {
        status = measure_batch(net, config, &batch, sums, err);
        if (status != WEIR_OK) {
            break;
        }
    }
    weir_loader_destroy(loader);
    if (status != WEIR_ERR_END) {
        return status;
    }
    if (config->comm != NULL) {
        status = weir_comm_allreduce(config->comm, sums, SCORE_COUNT, WEIR_COMM_F64);
        if (status != WEIR_OK) {
            weir_status failure = weir_comm_failure(config->comm, NULL, err);
            return failure != WEIR_OK ? failure : status;
        }
    }
    if (sums[SCORE_N] < 1) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "no picture can be read to measure with");
    }
    *out = (struct train_score){.loss = sums[SCORE_LOSS] / sums[SCORE_N],
                                .accuracy = sums[SCORE_CORRECT] / sums[SCORE_N],
                                .n = (uint64_t)sums[SCORE_N],
                                .found = train_detect_found(sums + SCORE_DETECT)};
    return WEIR_OK;
}
