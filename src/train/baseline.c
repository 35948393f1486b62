#include "train/baseline.h"

#include "stats/embedding.h"
#include "stats/histogram.h"
#include "stats/look.h"
#include "train/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gathered {
    double *brightness, *scores;
    double *looks[3]; /**< As look_names. */
    float *grey;      /**< One picture. */
    float *vectors;   /**< NULL for classifiers. */
    float *batch;     /**< Vectors of one batch. */
    int32_t *labels;
    size_t n, n_scores, max, dim, n_pixels;
    bool wants_brightness; /**< And vectors. */
    bool wants_scores;     /**< Of a classifier. */
};

static const char *const look_names[] = {"contrast", "sharpness", "entropy"};

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

/** The probability of the likeliest class: the largest softmax of n logits. Pure. */
static double top_probability(const float *logits, size_t n)
{
    double largest = (double)logits[0], sum = 0;
    for (size_t i = 1; i < n; i++) {
        largest = fmax(largest, (double)logits[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - largest);
    }
    return 1 / sum;
}

/* The probabilities that a classifier gives its likeliest labels. */
static weir_status add_probabilities(struct gathered *gathered, const struct weir_batch *batch,
                                     struct weir_net *net, struct weir_error *err)
{
    memcpy(weir_net_input(net), batch->images, batch->n_slots * gathered->n_pixels * sizeof(float));
    weir_status status = weir_net_forward(net, (int32_t)batch->n_slots, NULL);
    if (status != WEIR_OK) {
        return weir_error_set(err, status, "baseline: %s", weir_status_text(status));
    }
    for (uint32_t i = 0; i < batch->n_slots && gathered->n_scores < gathered->max; i++) {
        if (batch->labels[i] >= 0) {
            gathered->scores[gathered->n_scores++] =
                top_probability(weir_net_output(net) + i * gathered->dim, gathered->dim);
        }
    }
    return WEIR_OK;
}

static weir_status add_batch(struct gathered *gathered, const struct weir_batch *batch,
                             const struct weir_net_input *input, struct weir_net *net,
                             struct weir_error *err)
{
    if (gathered->wants_scores) {
        WEIR_TRY(add_probabilities(gathered, batch, net, err));
    }
    if (gathered->vectors != NULL) {
        weir_status status = train_embed_batch(net, input, batch->images, (int32_t)batch->n_slots,
                                               gathered->dim, gathered->batch);
        if (status != WEIR_OK) {
            return weir_error_set(err, status, "baseline: %s", weir_status_text(status));
        }
    }
    for (uint32_t i = 0;
         gathered->wants_brightness && i < batch->n_slots && gathered->n < gathered->max; i++) {
        if (batch->labels[i] < 0) {
            continue;
        }
        size_t at = gathered->n++;
        gathered->brightness[at] =
            weir_net_input_brightness(input, batch->images + i * gathered->n_pixels);
        gathered->labels[at] = batch->labels[i];
        weir_net_input_grey(input, batch->images + i * gathered->n_pixels, gathered->grey);
        struct weir_look look =
            weir_look_at(gathered->grey, (size_t)input->shape.h, (size_t)input->shape.w);
        gathered->looks[0][at] = look.contrast;
        gathered->looks[1][at] = look.sharpness;
        gathered->looks[2][at] = look.entropy;
        if (gathered->vectors != NULL) {
            memcpy(gathered->vectors + at * gathered->dim, gathered->batch + i * gathered->dim,
                   gathered->dim * sizeof(float));
        }
    }
    return WEIR_OK;
}

static bool is_full(const struct gathered *gathered)
{
    return (!gathered->wants_brightness || gathered->n == gathered->max) &&
           (!gathered->wants_scores || gathered->n_scores == gathered->max);
}

static void destroy_loader(struct weir_loader **loader)
{
    weir_loader_destroy(*loader);
}

static weir_status gather(struct gathered *gathered, const struct train_task *task,
                          struct weir_dataset *dataset, const struct weir_net_input *input,
                          struct weir_net *net, struct weir_error *err)
{
    const struct weir_loader_config config = {.input = train_data_input(input),
                                              .batch = (uint32_t)weir_net_batch(net),
                                              .seed = task->order.seed,
                                              .n_epochs = 1,
                                              .shuffle = true,
                                              .tail = WEIR_TAIL_PAD,
                                              .n_threads = (unsigned)task->n_threads};
    WEIR_AUTO(destroy_loader) struct weir_loader *loader = NULL;
    struct weir_batch batch;
    WEIR_TRY(weir_loader_create(dataset, &config, &loader, err));
    while (!is_full(gathered)) {
        weir_status status = weir_loader_next(loader, &batch, err);
        if (status == WEIR_ERR_END) {
            return WEIR_OK;
        }
        WEIR_TRY(status);
        WEIR_TRY(add_batch(gathered, &batch, input, net, err));
    }
    return WEIR_OK;
}

/* An embedding's scores are known when all vectors are there. */
static void add_genuine_scores(struct gathered *gathered)
{
    train_genuine_scores(gathered->vectors, gathered->labels, gathered->n, gathered->dim,
                         gathered->scores);
    for (size_t i = 0; i < gathered->n; i++) {
        if (!isnan(gathered->scores[i])) {
            gathered->scores[gathered->n_scores++] = gathered->scores[i];
        }
    }
}

static weir_status to_json(const struct gathered *gathered, struct weir_arena *arena, char **out,
                           struct weir_error *err)
{
    struct weir_histogram brightness, scores;
    if (weir_histogram_from_values(&brightness, gathered->brightness, gathered->n) != WEIR_OK) {
        return weir_error_set(err, WEIR_ERR_CORRUPT, "baseline: no picture can be read");
    }
    json_t *object = json_pack("{s:o}", "brightness", weir_histogram_to_json(&brightness));
    if (gathered->n_scores > 0 &&
        weir_histogram_from_values(&scores, gathered->scores, gathered->n_scores) == WEIR_OK) {
        json_object_set_new(object, "score", weir_histogram_to_json(&scores));
    }
    for (size_t k = 0; k < WEIR_ARRAY_LEN(look_names); k++) {
        struct weir_histogram look;
        if (weir_histogram_from_values(&look, gathered->looks[k], gathered->n) == WEIR_OK) {
            json_object_set_new(object, look_names[k], weir_histogram_to_json(&look));
        }
    }
    if (gathered->vectors != NULL) {
        json_t *embedding = weir_embedding_json(gathered->vectors, gathered->n, gathered->dim);
        if (embedding != NULL) {
            json_object_set_new(object, "embedding", embedding);
        }
    }
    *out = weir_json_text(object, arena);
    json_decref(object);
    return WEIR_OK;
}

/* What was learned is known too well: a classifier's scores are those of validation data, if there
 * are any. */
static weir_status gather_all(struct gathered *gathered, const struct train_task *task,
                              const struct weir_net_input *input, struct weir_net *net,
                              struct weir_error *err)
{
    gathered->wants_brightness = true;
    const bool has_scores = !task->is_embedding && !task->is_detector;
    gathered->wants_scores = has_scores && task->validation == NULL;
    WEIR_TRY(gather(gathered, task, task->dataset, input, net, err));
    if (task->is_embedding) {
        add_genuine_scores(gathered);
    } else if (has_scores && task->validation != NULL) {
        gathered->wants_brightness = false;
        gathered->wants_scores = true;
        WEIR_TRY(gather(gathered, task, task->validation, input, net, err));
    }
    return WEIR_OK;
}

static weir_status allocate(struct gathered *gathered, const struct train_task *task,
                            struct weir_net *net, struct weir_error *err)
{
    bool is_there = true;
    gathered->brightness = calloc(gathered->max, sizeof(double));
    gathered->scores = calloc(gathered->max, sizeof(double));
    gathered->labels = calloc(gathered->max, sizeof(int32_t));
    gathered->grey = calloc(gathered->n_pixels, sizeof(float));
    for (size_t k = 0; k < WEIR_ARRAY_LEN(look_names); k++) {
        gathered->looks[k] = calloc(gathered->max, sizeof(double));
        is_there = is_there && gathered->looks[k] != NULL;
    }
    if (task->is_embedding) {
        gathered->vectors = calloc(gathered->max * gathered->dim, sizeof(float));
        gathered->batch = calloc((size_t)weir_net_batch(net) * gathered->dim, sizeof(float));
        is_there = is_there && gathered->vectors != NULL && gathered->batch != NULL;
    }
    is_there = is_there && gathered->brightness != NULL && gathered->scores != NULL &&
               gathered->labels != NULL && gathered->grey != NULL;
    return is_there ? WEIR_OK : weir_error_set(err, WEIR_ERR_NOMEM, "no memory for the baseline");
}

static void free_all(struct gathered *gathered)
{
    for (size_t k = 0; k < WEIR_ARRAY_LEN(look_names); k++) {
        free(gathered->looks[k]);
    }
    free(gathered->grey);
    free(gathered->brightness);
    free(gathered->scores);
    free(gathered->labels);
    free(gathered->vectors);
    free(gathered->batch);
}

weir_status train_baseline(const struct train_task *task, const struct weir_net_input *input,
                           struct weir_net *net, struct weir_arena *arena, char **out,
                           struct weir_error *err)
{
    const struct weir_shape shape = input->shape;
    WEIR_AUTO(free_all)
    struct gathered gathered = {
        .max =
            WEIR_MIN(weir_dataset_n_samples(task->dataset),
                     (size_t)(task->is_detector ? TRAIN_BASELINE_SCENES_MAX : TRAIN_BASELINE_MAX)),
        .dim = (size_t)weir_graph_output_shape(task->graph).c,
        .n_pixels = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w};
    WEIR_TRY(allocate(&gathered, task, net, err));
    WEIR_TRY(gather_all(&gathered, task, input, net, err));
    return to_json(&gathered, arena, out, err);
}
