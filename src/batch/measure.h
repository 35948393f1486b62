/**
 * Measure: how right a classifier is on the labelled pictures of a dataset version, and with a second
 * one, which of the two is better. A picture's truth is the class folder that it lies in.
 *
 * Both models see the same pictures, so that they are compared picture by picture: the exact McNemar
 * test asks how likely it is that of those on which only one is right, so many fall to one side, were
 * both as good (Q. McNemar, Psychometrika 12, 1947).
 *
 * One task does it. The figures are metrics of its run, at step 0:
 *     accuracy, loss, samples, errors                              of the model
 *     live_accuracy, live_loss, disagreement, difference, p_value, better   with a second one
 *     only_model, only_live, loss_m2                               of which others can test again
 * "errors" are pictures that cannot be read, "samples" the others. "better" is 1 if the model is
 * significantly better than the live one, -1 if it is worse, else 0. "only_model" and "only_live" are
 * the pictures on which one alone is right; "loss_m2" is the sum of the squares of the distances of each
 * picture's difference in loss, live less model, from their mean.
 *
 * With a second one the run also has a comparison (track/comparison.h): which pictures they differ on, a
 * sample of them that disagree.h chooses, and which classes are taken for which.
 */
#ifndef WEIR_BATCH_MEASURE_H
#define WEIR_BATCH_MEASURE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Of one model. */
struct measure_score {
    int64_t n, n_right;
    double loss; /**< Sum of -ln of the probability that the truth was given. */
};

/** Of two on the same pictures. */
struct measure_pairs {
    int64_t only_first, only_second; /**< Pictures on which one alone is right. */
    int64_t n_other;                 /**< On which they answer differently. */
    int64_t n;
    double loss_mean, loss_m2; /**< Of the differences in loss, second less first (Welford). */
};

/** The loss of a picture: -ln of the probability that the truth was given. 0 counts as the least that a
 *  float has. */
double measure_loss(double probability);

/** One picture more, and its loss. */
void measure_score_add(struct measure_score *score, bool is_right, double loss);

/** One picture more: who is right, whether they answer alike, and the difference of their losses. */
void measure_pairs_add(struct measure_pairs *pairs, bool is_first, bool is_second, bool is_alike,
                       double loss_difference);

/** @return The share that is right; 0 of none. */
double measure_accuracy(const struct measure_score *score);

/** @return Two-sided p-value of the exact McNemar test; 1 without a picture on which one alone is right. */
double measure_p_value(const struct measure_pairs *pairs);

/** 1: the first is better, -1: the second is, 0: at this level nobody can say. */
int measure_better(const struct measure_pairs *pairs, double alpha);

struct batch_spec;
struct disagree;
struct weir_client;

/** What is told of a measurement. */
struct measure_found {
    const struct batch_spec *spec;
    const struct measure_score *scores; /**< Of the model, and of the live one if there is one. */
    const struct measure_pairs *pairs;  /**< NULL: there is none. */
    struct disagree *disagree;          /**< NULL: there is none. */
    int64_t n_errors;
};

/**
 * Print the figures, and store them with the run; before them the comparison, which is there then for who
 * waits for the figures. A comparison that the server does not take is a warning in the log.
 *
 * @param client  NULL: there is no server.
 * @return What kept the server from taking the figures, after minutes of trying.
 */
weir_status measure_tell(const struct measure_found *found, struct weir_client *client,
                         struct weir_error *err) WEIR_MUST_CHECK;

/** `weir-worker measure --spec FILE`: exit status. */
int weir_measure_main(int argc, char **argv);

#endif
