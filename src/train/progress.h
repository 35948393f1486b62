/** Progress: where a training stands, for the person at the screen and for the server. */
#ifndef WEIR_TRAIN_PROGRESS_H
#define WEIR_TRAIN_PROGRESS_H

#include "comm/comm.h"
#include "train/checkpoint.h"
#include "train/score.h"
#include "train/task.h"

enum progress_form {
    PROGRESS_TERMINAL, /**< One line that is written over: a terminal. */
    PROGRESS_LINES,    /**< A line now and then: a log. */
    PROGRESS_JSON,     /**< One JSON object per line. */
};

/** What is shown and reported: figures since the last poll. */
struct progress_view {
    uint64_t step, n_steps, epoch, n_epochs; /**< epoch counts from 1. */
    double loss, accuracy;                   /**< Over the pictures since the last poll. */
    double images_per_second, learning_rate, eta_s;
};

/** Workers, by the number that each was started with. */
struct progress_group {
    int n, members[WEIR_COMM_MAX_RANKS];
};

/** A change of the group of workers. */
struct progress_change {
    uint64_t step; /**< The next. */
    int n_workers;
    struct progress_group lost, joined;
    double seconds; /**< From the detection to readiness for the next step. */
};

struct train_progress {
    const struct train_task *task;
    enum progress_form form;
    int64_t start_ms, last_ms, last_line_ms; /**< Monotonic. */
    uint64_t first_step, last_step;
    double loss, correct, seen; /**< Sums since the last poll. */
    bool is_line_open;          /**< PROGRESS_TERMINAL: the cursor stands behind a line. */
};

void train_progress_start(struct train_progress *progress, const struct train_task *task,
                          const struct train_state *state);

/** Sums of a step over all workers. */
void train_progress_add(struct train_progress *progress, double loss, double correct, double seen);

/**
 * Is a view due? Once a second, or after ten steps that took a while (with display_every after that
 * many steps), and at the end of an epoch. *out is then the view since the last one, and is shown
 * if that is due too.
 */
bool train_progress_poll(struct train_progress *progress, const struct train_state *state,
                         bool is_epoch_end, struct progress_view *out);

/** An epoch is over. score->n is 0 without a measurement. is_best: the best one so far, and
 *  kept. */
void train_progress_epoch(struct train_progress *progress, const struct train_state *state,
                          const struct train_score *score, bool is_best);

/** An event that is shown: "resumed", "checkpoint"; key NULL: without a number. */
void train_progress_note(struct train_progress *progress, const char *event, const char *key,
                         double value);

/** This version of a model was registered. */
void train_progress_registered(struct train_progress *progress, const char *model, int64_t version);

/** Workers were lost or have joined. */
void train_progress_members(struct train_progress *progress, const struct progress_change *change);

/** The model file is written. */
void train_progress_done(struct train_progress *progress, const char *output);

#endif
