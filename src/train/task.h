/**
 * A training with everything that follows from its configuration and its data: what every rank,
 * worker or parameter server, computes for itself, alike, before it meets the others.
 */
#ifndef WEIR_TRAIN_TASK_H
#define WEIR_TRAIN_TASK_H

#include "nn/model_file.h"
#include "nn/net_file.h"
#include "nn/optimizer.h"
#include "nn/schedule.h"
#include "train/config.h"

struct train_cut;

struct train_task {
    const struct weir_train_config *config; /**< Borrowed. */
    struct weir_dataset *dataset;
    struct train_cut *cut;           /**< The dataset is its view. NULL: photos are whole. */
    struct weir_dataset *mirrored;   /**< View with the mirror images; NULL if not asked for. */
    struct weir_dataset *validation; /**< NULL if none. */
    struct weir_model_spec *spec;
    struct weir_graph *graph;
    bool is_embedding;
    bool is_detector; /**< dataset and validation are scenes (data/scenes.h). */
    enum weir_augment augment;
    struct weir_order order;
    uint64_t n_epochs, steps_per_epoch, n_steps;
    struct weir_schedule schedule;
    struct weir_optimizer_config optimizer;
    double learning_rate;
    int32_t n_threads; /**< Of one worker. */
    char *identity;    /**< JSON object that a checkpoint must agree with. */
    struct weir_arena arena;
};

/**
 * Open the data and build the model. `task` is caller memory; call train_task_close in any case.
 *
 * @return INVALID, NOT_FOUND …: the user's mistake as a sentence.
 */
weir_status train_task_open(struct train_task *task, const struct weir_train_config *config,
                            struct weir_error *err) WEIR_MUST_CHECK;
/** The same with an open dataset, which then belongs to the task, also on error. */
weir_status train_task_open_on(struct train_task *task, const struct weir_train_config *config,
                               struct weir_dataset *dataset,
                               struct weir_error *err) WEIR_MUST_CHECK;
void train_task_close(struct train_task *task);

/** The training samples: the mirrored view, or the dataset itself. Borrowed. */
struct weir_dataset *train_task_stream(const struct train_task *task);

/**
 * Normalisation from the data: mean and standard deviation per channel of up to TRAIN_INPUT_SAMPLES
 * pictures, chosen by the seed. Every run of a training computes the same. A detector's is always 0.5 and 0.25.
 */
#define TRAIN_INPUT_SAMPLES 1024
weir_status train_measure_input(const struct train_task *task, struct weir_net_input *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** The same description for data's functions. */
struct weir_input train_data_input(const struct weir_net_input *input);

/**
 * The training net of one of several workers: its share of the batch, or the part of it that one of
 * several runs computes. The share is cut into slices of the size that a lone worker's have, unless
 * these would leave threads without work, so that images are computed alike by any number of
 * workers. A lone worker makes its gradients of config->gradient_parts parts, where they divide the
 * batch.
 */
struct weir_net_config train_net_config(const struct train_task *task, uint32_t rank,
                                        uint32_t n_workers);

/** A lone worker's loader. A worker of several adds its place, and each sets its threads. */
struct weir_loader_config train_loader_config(const struct train_task *task,
                                              const struct weir_net_input *input);

/** {"model", "batch_size", …}: for the model file, the server and the checkpoint. New reference. */
json_t *train_parameters(const struct train_task *task);

/** Names of a dataset's classes, in the arena. */
const char *const *train_class_names(const struct weir_dataset *dataset, struct weir_arena *arena);

/** @return INVALID if two datasets have different classes, or another order of them. */
weir_status train_check_classes(const struct weir_dataset *dataset, const char *const *names,
                                size_t n_names, const char *what,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
