/**
 * Score quantile: the score that a stated share of impostors reaches, and how sure that is.
 *
 * Given are scores of photos of some people. Photos of one person are too alike to count apart, so
 * how the quantile is estimated depends on how many people the scores are of:
 *
 * - 10 or more people have scores above it: it is read off.
 * - 10 or more people have the largest 5 % of the scores (at least 10): these are fitted by an
 *   exponential distribution (Pickands 1975: excesses over a high threshold are generalised
 *   Pareto; shape 0 is on the safe side for cosines, which are bounded). The mean excess is itself
 *   an estimate, from scores of m people, so the quantile is the predictive one, which a new score
 *   passes at the stated rate on average over such estimates:
 *   base + m * mean excess * ((share of the tail / rate)^(1/m) - 1).
 * - Fewer: the highest scores are those of the one or two people who look like somebody, and say
 *   nothing of the next ten impostors. All scores are used: the quantile is mean + deviation *
 *   sqrt(1 + 1/m) * k, m being the number of people, as the mean is an estimate too. k is the
 *   quantile of a distribution with the skewness of the scores (Cornish and Fisher 1937, the first
 *   term), and that is drawn towards SKEW_OF_MAXIMA, as much as ten people would.
 *
 * The functions are pure but reorder `scores`. Cost: n log n.
 */
#ifndef WEIR_PREDICT_SCORE_QUANTILE_H
#define WEIR_PREDICT_SCORE_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

/** Fewer scores than this say little by themselves: their moments are all that is used. */
#define SCORES_FEW 20

/** Of the largest of many independent scores: between a normal distribution's (0) and Gumbel's
 *  (1.14), where the largest of ten to a hundred normal ones is. */
#define SKEW_OF_MAXIMA 0.6

/** A score, and whose photo got it. */
struct impostor {
    double score;
    int32_t person;
};

/** The standard normal distribution's quantile, for p in (0, 1). */
double score_normal_quantile(double p);

/** How many people the scores are of. */
size_t score_count_people(struct impostor *scores, size_t n);

/** The score that a share `rate` in (0, 1) of photos of other such people reaches; never lower for
 *  a lower rate. NaN if n is 0. */
double score_quantile(struct impostor *scores, size_t n, double rate);

/** The share that reaches `threshold`: score_quantile's inverse. NaN if n is 0. */
double score_rate(struct impostor *scores, size_t n, double threshold);

/**
 * Between which values the quantile would lie in nine of ten cases, had other such people come: a
 * bootstrap, in which the people are drawn anew, with repetition, 200 times. The same scores give
 * the same interval.
 *
 * @param drawn  Scratch, room for 2 n.
 */
void score_interval(struct impostor *scores, size_t n, double rate, struct impostor *drawn,
                    double *out_low, double *out_high);

#endif
