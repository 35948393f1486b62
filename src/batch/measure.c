#include "batch/measure.h"

#include "batch/disagree.h"
#include "batch/input.h"
#include "batch/model.h"
#include "batch/program.h"

#include "serve/infer.h"

#include <string.h>

#define CALL_TIMEOUT_MS 60000
#define MODELS_MAX      2

/** What the spec has beside a batch prediction's (batch/spec.h). */
struct measure_spec {
    struct batch_spec of[MODELS_MAX]; /**< The second: with the live model's file and signature. */
    size_t n_models;
};

struct measure {
    const struct measure_spec *spec;
    struct weir_client *client;
    struct batch_input *input;
    struct batch_model *models[MODELS_MAX];
    struct measure_score scores[MODELS_MAX];
    struct measure_pairs pairs;
    struct disagree *disagree; /**< Of two. */
    int64_t n_errors;
};

/* ---- spec ------------------------------------------------------------------------------------ */

/* The second model is the first's spec with another file. */
static struct measure_spec measure_spec_of(const struct batch_spec *spec)
{
    struct measure_spec both = {.of = {*spec, *spec}, .n_models = 1};
    if (spec->live_blob != NULL && spec->live_signature != NULL) {
        both.of[1].model = spec->live;
        both.of[1].blob = spec->live_blob;
        both.of[1].signature = spec->live_signature;
        both.n_models = 2;
    }
    return both;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/** Pictures that are computed together. */
struct group {
    int64_t first, n;    /**< Files. */
    int64_t n_in;        /**< Of those, in the models' inputs. */
    const char **truths; /**< By place in the input. */
    int64_t *files;      /**< The same: which one it is. */
};

/* "ada/1.png": ada. */
static char *class_of(const struct measure *measure, int64_t i_file, struct weir_arena *arena)
{
    char name[BATCH_NAME_BYTES];
    batch_input_name(measure->input, i_file, name);
    size_t len = strcspn(name, "/");
    return name[len] == '/' ? weir_arena_printf(arena, "%.*s", (int)len, name) : NULL;
}

/* A model that has other names for the classes would be measured as one that is always wrong. */
static weir_status check_truth(const struct measure *measure, const char *truth,
                               struct weir_error *err)
{
    for (size_t i = 0; i < measure->spec->n_models; i++) {
        const struct weir_signature *signature = batch_model_signature(measure->models[i]);
        size_t k = 0;
        while (k < signature->n_labels && strcmp(signature->labels[k], truth) != 0) {
            k++;
        }
        if (k == signature->n_labels) {
            return weir_error_set(err, WEIR_ERR_INVALID,
                                  "class \"%s\" of dataset %s is no label of model %s, whose first "
                                  "is \"%s\": they must be the same names",
                                  truth, measure->spec->of[0].dataset, measure->spec->of[i].model,
                                  signature->labels[0]);
        }
    }
    return WEIR_OK;
}

static weir_status put_one(struct measure *measure, int64_t i_file, int64_t place,
                           struct weir_error *err)
{
    WEIR_AUTO(weir_image_fini) struct weir_image image = {0};
    WEIR_TRY(batch_input_read(measure->input, i_file, &image, err));
    for (size_t i = 0; i < measure->spec->n_models; i++) {
        WEIR_TRY(batch_model_put(measure->models[i], place, &image, err));
    }
    return WEIR_OK;
}

/* As many files as both models have room for. */
static weir_status take_group(struct measure *measure, int64_t first, struct weir_arena *arena,
                              struct group *out, struct weir_error *err)
{
    int64_t n = batch_input_n_files(measure->input) - first;
    for (size_t i = 0; i < measure->spec->n_models; i++) {
        n = WEIR_MIN(n, batch_model_batch(measure->models[i]));
    }
    struct group group = {.first = first,
                          .truths = WEIR_ARENA_ARRAY(arena, (size_t)n + 1, const char *),
                          .files = WEIR_ARENA_ARRAY(arena, (size_t)n + 1, int64_t)};
    for (; group.n < n; group.n++) {
        struct weir_error why = {0};
        const char *truth = class_of(measure, first + group.n, arena);
        if (truth != NULL) {
            WEIR_TRY(check_truth(measure, truth, err));
        }
        weir_status status =
            truth == NULL ? WEIR_OK : put_one(measure, first + group.n, group.n_in, &why);
        if (status != WEIR_OK && !batch_input_is_row(status)) {
            *err = why;
            return status;
        }
        if (truth == NULL || status != WEIR_OK) {
            measure->n_errors++;
        } else {
            group.truths[group.n_in] = truth;
            group.files[group.n_in++] = first + group.n;
        }
    }
    *out = group;
    return WEIR_OK;
}

/** What a model says of each picture of a group; labels in the arena, where its outputs are not. */
struct said {
    const char **labels;
    double *scores, *losses; /**< Probability of the label; loss by the truth. */
};

static weir_status ask(struct measure *measure, size_t i_model, const struct group *group,
                       struct weir_arena *arena, struct said *said, struct weir_error *err)
{
    struct weir_tensor *const *outputs;
    struct batch_model *model = measure->models[i_model];
    WEIR_TRY(batch_model_run(model, group->n_in, &outputs, err));
    const struct weir_signature *signature = batch_model_signature(model);
    const struct infer infer = {.signature = signature, .arena = arena, .out = outputs};
    for (int64_t i = 0; i < group->n_in; i++) {
        struct infer_class *classes;
        size_t n = infer_top(&infer, 0, i, true, signature->n_labels, &classes);
        double probability = 0;
        for (size_t k = 0; k < n; k++) {
            probability =
                strcmp(classes[k].label, group->truths[i]) == 0 ? classes[k].value : probability;
        }
        said->labels[i] = n > 0 ? weir_arena_strdup(arena, classes[0].label) : "";
        said->scores[i] = n > 0 ? classes[0].value : 0;
        said->losses[i] = measure_loss(probability);
        measure_score_add(&measure->scores[i_model], strcmp(said->labels[i], group->truths[i]) == 0,
                          said->losses[i]);
    }
    return WEIR_OK;
}

static void compare(struct measure *measure, const struct group *group, int64_t k,
                    const struct said said[MODELS_MAX])
{
    char name[BATCH_NAME_BYTES];
    const char *first = said[0].labels[k], *second = said[1].labels[k];
    measure_pairs_add(&measure->pairs, strcmp(first, group->truths[k]) == 0,
                      strcmp(second, group->truths[k]) == 0, strcmp(first, second) == 0,
                      said[1].losses[k] - said[0].losses[k]);
    disagree_add(
        measure->disagree,
        &(struct disagree_sample){.file = batch_input_name(measure->input, group->files[k], name),
                                  .sha256 = batch_input_digest(measure->input, group->files[k]),
                                  .label = group->truths[k],
                                  .answer = first,
                                  .live_answer = second,
                                  .score = said[0].scores[k],
                                  .live_score = said[1].scores[k]});
}

static weir_status measure_group(struct measure *measure, const struct group *group,
                                 struct weir_arena *arena, struct weir_error *err)
{
    struct said said[MODELS_MAX];
    for (size_t i = 0; i < measure->spec->n_models && group->n_in > 0; i++) {
        said[i] = (struct said){WEIR_ARENA_ARRAY(arena, (size_t)group->n_in, const char *),
                                WEIR_ARENA_ARRAY(arena, (size_t)group->n_in, double),
                                WEIR_ARENA_ARRAY(arena, (size_t)group->n_in, double)};
        WEIR_TRY(ask(measure, i, group, arena, &said[i], err));
    }
    for (int64_t k = 0; measure->spec->n_models == 2 && k < group->n_in; k++) {
        compare(measure, group, k, said);
    }
    return WEIR_OK;
}

static weir_status measure_all(struct measure *measure, struct weir_error *err)
{
    weir_status status = WEIR_OK;
    for (int64_t at = 0; at < batch_input_n_files(measure->input) && status == WEIR_OK;) {
        struct weir_arena arena;
        struct group group = {0};
        weir_arena_init(&arena, 0);
        status = take_group(measure, at, &arena, &group, err);
        if (status == WEIR_OK) {
            status = measure_group(measure, &group, &arena, err);
        }
        weir_arena_fini(&arena);
        at += group.n;
    }
    WEIR_TRY(status);
    return measure->scores[0].n > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_INVALID,
                                "no picture of dataset %s could be measured: %lld could not be "
                                "read, or lie in no class's folder",
                                measure->spec->of[0].dataset, (long long)measure->n_errors);
}

/* ---- program --------------------------------------------------------------------------------- */

static weir_status check_model(const struct measure *measure, size_t i, struct weir_error *err)
{
    const struct weir_signature *signature = batch_model_signature(measure->models[i]);
    bool is_classifier = signature->output_kind == SIGNATURE_LOGITS ||
                         signature->output_kind == SIGNATURE_PROBABILITIES;
    return is_classifier && signature->n_labels > 0
               ? WEIR_OK
               : weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                                "model %s %s: only a classifier with labels is measured",
                                measure->spec->of[i].model,
                                is_classifier ? "has no labels" : "is no classifier");
}

static weir_status open_all(struct measure *measure, struct weir_error *err)
{
    const struct batch_spec *spec = &measure->spec->of[0];
    if (strcmp(spec->dataset_kind, "folder") != 0) {
        return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                              "dataset %s is of kind %s: a folder per class is measured",
                              spec->dataset, spec->dataset_kind);
    }
    if (spec->server != NULL) {
        WEIR_TRY(weir_client_open(&(struct weir_client_config){.server = spec->server,
                                                               .token_file = spec->token_file,
                                                               .ca_file = spec->ca_file,
                                                               .timeout_ms = CALL_TIMEOUT_MS},
                                  &measure->client, err));
    }
    WEIR_TRY(batch_input_open(spec, measure->client, &measure->input, err));
    for (size_t i = 0; i < measure->spec->n_models; i++) {
        WEIR_TRY(
            batch_model_open(&measure->spec->of[i], measure->client, &measure->models[i], err));
        WEIR_TRY(check_model(measure, i, err));
    }
    return WEIR_OK;
}

static weir_status measure_run(const struct batch_spec *spec, struct weir_error *err)
{
    const struct measure_spec both = measure_spec_of(spec);
    bool is_pair = both.n_models == 2;
    struct measure measure = {.spec = &both,
                              .disagree = is_pair ? disagree_create(DISAGREE_KEPT_MAX) : NULL};
    weir_status status = open_all(&measure, err);
    if (status == WEIR_OK) {
        status = measure_all(&measure, err);
    }
    if (status == WEIR_OK) {
        const struct measure_found found = {.spec = spec,
                                            .scores = measure.scores,
                                            .pairs = is_pair ? &measure.pairs : NULL,
                                            .disagree = measure.disagree,
                                            .n_errors = measure.n_errors};
        status = measure_tell(&found, measure.client, err);
    }
    for (size_t i = 0; i < MODELS_MAX; i++) {
        batch_model_close(measure.models[i]);
    }
    disagree_destroy(measure.disagree);
    batch_input_close(measure.input);
    if (measure.client != NULL) {
        weir_client_close(measure.client);
    }
    return status;
}

int weir_measure_main(int argc, char **argv)
{
    return batch_program(argc, argv, "measure", "What to measure (spec.json)", measure_run);
}
