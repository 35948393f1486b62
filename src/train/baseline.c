#include "train/baseline.h"

#include "stats/histogram.h"
#include "train/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gathered {
    double *brightness, *scores;
    float *vectors; /**< NULL for classifiers. */
    float *batch;   /**< Vectors of one batch. */
    int32_t *labels;
    size_t n, max, dim, n_pixels;
};

void train_genuine_scores(const float *vectors, const int32_t *labels, size_t n, size_t dim,
                          double *out_scores)
{
    for (size_t i = 0; i < n; i++) {
        out_scores[i] = NAN;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            if (labels[i] != labels[j]) {
                continue;
            }
            float dot = 0;
            for (size_t d = 0; d < dim; d++) {
                dot += vectors[i * dim + d] * vectors[j * dim + d];
            }
            out_scores[i] = fmax(out_scores[i], (double)dot); /* fmax passes over NaN */
            out_scores[j] = fmax(out_scores[j], (double)dot);
        }
    }
}

static weir_status add_batch(struct gathered *gathered, const struct weir_batch *batch,
                             const struct weir_net_input *input, struct weir_net *net,
                             struct weir_error *err)
{
    if (gathered->vectors != NULL) {
        weir_status status = train_embed_batch(net, input, batch->images, (int32_t)batch->n_slots,
                                               gathered->dim, gathered->batch);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "baseline: %s", weir_status_text(status));
        }
    }
    for (uint32_t i = 0; i < batch->n_slots && gathered->n < gathered->max; i++) {
        if (batch->labels[i] < 0) {
            continue;
        }
        size_t at = gathered->n++;
        gathered->brightness[at] =
            weir_net_input_brightness(input, batch->images + i * gathered->n_pixels);
        gathered->labels[at] = batch->labels[i];
        if (gathered->vectors != NULL) {
            memcpy(gathered->vectors + at * gathered->dim, gathered->batch + i * gathered->dim,
                   gathered->dim * sizeof(float));
        }
    }
    return WEIR_OK;
}

static weir_status gather(struct gathered *gathered, const struct train_task *task,
                          const struct weir_net_input *input, struct weir_net *net,
                          struct weir_error *err)
{
    const struct weir_loader_config config = {.input = train_data_input(input),
                                              .batch = (uint32_t)weir_net_batch(net),
                                              .seed = task->order.seed,
                                              .n_epochs = 1,
                                              .shuffle = true,
                                              .tail = WEIR_TAIL_PAD,
                                              .n_threads = (unsigned)task->n_threads};
    struct weir_loader *loader = NULL;
    struct weir_batch batch;
    weir_status status = WEIR_OK;
    WEIR_TRY(weir_loader_create(task->dataset, &config, &loader, err));
    while (status == WEIR_OK && gathered->n < gathered->max) {
        status = weir_loader_next(loader, &batch, err);
        if (status == WEIR_OK) {
            status = add_batch(gathered, &batch, input, net, err);
        }
    }
    weir_loader_destroy(loader);
    return status == WEIR_ERR_END ? WEIR_OK : status;
}

static weir_status to_json(const struct gathered *gathered, struct weir_arena *arena, char **out,
                           struct weir_error *err)
{
    struct weir_histogram brightness, scores;
    if (weir_histogram_from_values(&brightness, gathered->brightness, gathered->n) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "baseline: no picture can be read");
    }
    json_t *object = json_pack("{s:o}", "brightness", weir_histogram_to_json(&brightness));
    size_t n_scores = 0;
    if (gathered->vectors != NULL) {
        train_genuine_scores(gathered->vectors, gathered->labels, gathered->n, gathered->dim,
                             gathered->scores);
        for (size_t i = 0; i < gathered->n; i++) {
            if (!isnan(gathered->scores[i])) {
                gathered->scores[n_scores++] = gathered->scores[i];
            }
        }
    }
    if (n_scores > 0 &&
        weir_histogram_from_values(&scores, gathered->scores, n_scores) == WEIR_OK) {
        json_object_set_new(object, "score", weir_histogram_to_json(&scores));
    }
    *out = weir_json_text(object, arena);
    json_decref(object);
    return WEIR_OK;
}

weir_status train_baseline(const struct train_task *task, const struct weir_net_input *input,
                           struct weir_net *net, struct weir_arena *arena, char **out,
                           struct weir_error *err)
{
    const struct weir_shape shape = input->shape;
    struct gathered gathered = {
        .max = WEIR_MIN(weir_dataset_n_samples(task->dataset), (size_t)TRAIN_BASELINE_MAX),
        .dim = (size_t)weir_graph_output_shape(task->graph).c,
        .n_pixels = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w};
    gathered.brightness = calloc(gathered.max, sizeof(double));
    gathered.scores = calloc(gathered.max, sizeof(double));
    gathered.labels = calloc(gathered.max, sizeof(int32_t));
    if (task->is_embedding) {
        gathered.vectors = calloc(gathered.max * gathered.dim, sizeof(float));
        gathered.batch = calloc((size_t)weir_net_batch(net) * gathered.dim, sizeof(float));
    }
    weir_status status = WEIR_OK;
    if (gathered.brightness == NULL || gathered.scores == NULL || gathered.labels == NULL ||
        (task->is_embedding && (gathered.vectors == NULL || gathered.batch == NULL))) {
        status = weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the baseline");
    }
    if (status == WEIR_OK) {
        status = gather(&gathered, task, input, net, err);
    }
    if (status == WEIR_OK) {
        status = to_json(&gathered, arena, out, err);
    }
    free(gathered.brightness);
    free(gathered.scores);
    free(gathered.labels);
    free(gathered.vectors);
    free(gathered.batch);
    return status;
}
