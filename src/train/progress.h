/** Progress: where a training stands, for the person at the screen and for the server. */
#ifndef WEIR_TRAIN_PROGRESS_H
#define WEIR_TRAIN_PROGRESS_H

#include "comm/comm.h"
#include "train/checkpoint.h"
#include "train/score.h"
#include "train/task.h"

enum progress_form {
    PROGRESS_LIVE,  /**< One line that is written over: a terminal. */
    PROGRESS_LINES, /**< A line now and then: a log. */
    PROGRESS_JSON,  /**< One JSON object per line. */
};

/** Since the last look: what is shown and reported. */
struct progress_view {
    uint64_t step, n_steps, epoch, n_epochs; /**< epoch counts from 1. */
    double loss, accuracy;                   /**< Over the pictures since the last look. */
    double images_per_second, learning_rate, eta_s;
};

/** Workers by the number that each was started as. */
struct progress_group {
    int n, members[WEIR_COMM_MAX_RANKS];
};

/** The group of workers became another one. */
struct progress_change {
    uint64_t step; /**< The next. */
    int n_workers;
    struct progress_group lost, joined;
    double seconds; /**< From noticing it to being ready for the next step. */
};

struct train_progress {
    const struct train_task *task;
    enum progress_form form;
    int64_t start_ms, last_ms, last_line_ms; /**< Monotonic. */
    uint64_t first_step, last_step;
    double loss, correct, seen; /**< Sums since the last look. */
    bool is_line_open;          /**< PROGRESS_LIVE: the cursor stands behind a line. */
};

void train_progress_start(struct train_progress *progress, const struct train_task *task,
                          const struct train_state *state);

/** Sums of a step over all workers. */
void train_progress_add(struct train_progress *progress, double loss, double correct, double seen);

/**
 * Is it time to look: a second has passed, or ten steps that took a while (or, where display_every
 * is given, so many steps are done), or the epoch is over?
 * Then the view since the last look is given, and shown if that is due too.
 */
bool train_progress_look(struct train_progress *progress, const struct train_state *state,
                         bool is_epoch_end, struct progress_view *out);

/** An epoch is over. score->n is 0 if there was no measurement. is_best: the best one so far, and
 *  kept. */
void train_progress_epoch(struct train_progress *progress, const struct train_state *state,
                          const struct train_score *score, bool is_best);

/** Something worth a line: "resumed", "checkpoint"; key NULL: no number. */
void train_progress_note(struct train_progress *progress, const char *event, const char *key,
                         double value);

/** Who was lost and who came. */
void train_progress_members(struct train_progress *progress, const struct progress_change *change);

/** The model is there. */
void train_progress_done(struct train_progress *progress, const char *output);

#endif
