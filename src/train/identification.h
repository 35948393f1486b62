/**
 * Identification: how well a recogniser that is trained from scratch tells people apart, both those
 * that it was trained on and others, compared to two recognisers that need no network.
 *
 * For each seed the people are split (split.h). A net is trained on the enrolled photographs of the
 * trained people only (the model's recipe, seed = the split's). Then every probe is scored against
 * every person of its group: the largest cosine to one of the person's enrolled photographs.
 * Groups: the trained people with five enrolled photographs; the unseen with five; the unseen with
 * one. Figures: recognition.h, at a false accept rate of 1 %.
 *
 * The two others, on the same splits and photographs at their own size:
 * - pixel cosine: grey values less the mean of the training photographs (without subtracting it
 *   all figures are lower);
 * - PCA: whitened projection on the first 50 eigenfaces of the training photographs.
 *
 * The same data and seeds give the same figures for any number of threads.
 */
#ifndef WEIR_TRAIN_IDENTIFICATION_H
#define WEIR_TRAIN_IDENTIFICATION_H

#include "base/arena.h"
#include "data/data.h"
#include "train/recognition.h"

#include <stdio.h>

#define IDENTIFICATION_FALSE_ACCEPT_RATE 0.01
#define IDENTIFICATION_PCA_COMPONENTS    50
#define IDENTIFICATION_SEEDS_MAX         1000

enum identification_group {
    IDENTIFICATION_TRAINED,
    IDENTIFICATION_UNSEEN_FIVE,
    IDENTIFICATION_UNSEEN_ONE,
    IDENTIFICATION_GROUPS
};

enum identification_method {
    IDENTIFICATION_WEIR,
    IDENTIFICATION_PIXEL_COSINE,
    IDENTIFICATION_PCA,
    IDENTIFICATION_METHODS
};

/** Figures of one seed. */
struct identification_round {
    struct recognition figures[IDENTIFICATION_GROUPS][IDENTIFICATION_METHODS];
};

/** Mean and standard deviation (over n seeds) of both figures. */
struct identification_summary {
    struct recognition mean, spread;
};

struct identification_result {
    size_t n_seeds, n_people, n_trained;
    struct identification_summary summaries[IDENTIFICATION_GROUPS][IDENTIFICATION_METHODS];
};

struct identification_config {
    const char *model;   /**< A name of the zoo or a model file; it must learn an embedding. */
    const char *backend; /**< "onednn" or "reference". */
    const char *data;    /**< A folder per person, at least six photographs each. */
    size_t first_seed, n_seeds;
    int64_t n_threads; /**< Computing threads; 0: one per CPU. */
    FILE *progress;    /**< A line per seed; NULL: none. */
};

/**
 * Run the protocol.
 *
 * @return INVALID if the data is too small, naming the person, or if the model is no embedding; the
 *         error of a damaged photograph; NOMEM; IO; NOT_FOUND.
 */
weir_status identification_run(const struct identification_config *config,
                               struct identification_result *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Means and deviations over rounds. Pure. */
void identification_summarise(const struct identification_round *rounds, size_t n_rounds,
                              struct identification_result *out);

/** Print as a table for people, or as one JSON object. */
void identification_print(const struct identification_result *result, bool is_json, FILE *file);

#endif
