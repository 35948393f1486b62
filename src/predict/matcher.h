/**
 * Matcher: who, of the people in a gallery, a face is most like.
 *
 * A template is the embedding of one photo, a unit vector of `dim` floats; a person has one or
 * more. The score of a person is the largest cosine over the person's templates. Pure.
 */
#ifndef WEIR_PREDICT_MATCHER_H
#define WEIR_PREDICT_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct templates {
    const float *vectors;   /**< n × dim, unit length. */
    const int32_t *persons; /**< n: whose. */
    size_t n;
    size_t dim;
};

struct match {
    int32_t person;    /**< −1: nobody to compare with. */
    double score;      /**< Cosine, −1 … 1; NaN if person is −1. */
    size_t i_template; /**< That gave the score. */
};

/** Cosine of two unit vectors. */
double match_cosine(const float *a, const float *b, size_t dim);

/** The best match; the first template wins a tie. Cost: n · dim multiply-adds. */
struct match match_best(const struct templates *templates, const float *probe);

/** The best score of each person, by number below n_persons; -infinity of one without templates. */
void match_each(const struct templates *templates, const float *probe, size_t n_persons,
                float *out_scores);

/**
 * The best of each of the k persons who are most like the probe, most like first; the first template wins a tie.
 * @return How many there are: k at most. Cost: n · dim multiply-adds.
 */
size_t match_nearest(const struct templates *templates, const float *probe, size_t k,
                     struct match *out);

/** As match_best, among the templates of `person` but i_excluded. */
struct match match_best_same(const struct templates *templates, const float *probe, int32_t person,
                             size_t i_excluded);

#endif
