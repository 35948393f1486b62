/**
 * Disagree: of the pictures on which two models answer differently, a bounded sample for people to look
 * at, and which classes each takes for which. Pure.
 *
 *     struct disagree *disagree = disagree_create(DISAGREE_KEPT_MAX);
 *     disagree_add(disagree, &sample);                      for every picture, alike or not
 *     n = disagree_choose(disagree, rows);                  what is shown, the best of each kind
 *     disagree_destroy(disagree);
 *
 * The sample: the three kinds have equal shares; what one kind does not fill is shared by the others. Of
 * a kind those stay of which the wrong model was most confident; of equally confident ones the first.
 * So the same pictures give the same sample, in whatever groups they were computed.
 */
#ifndef WEIR_BATCH_DISAGREE_H
#define WEIR_BATCH_DISAGREE_H

#include <stddef.h>
#include <stdint.h>

#define DISAGREE_KEPT_MAX       200
#define DISAGREE_CONFUSIONS_MAX 64
/** Pairs of a class and a wrong answer that are counted; what comes beyond them is left out. */
#define DISAGREE_PAIRS_MAX 65536

enum disagree_kind {
    DISAGREE_LIVE_RIGHT,      /**< The second model alone is right. */
    DISAGREE_CANDIDATE_RIGHT, /**< The first one alone is. */
    DISAGREE_BOTH_WRONG,      /**< Neither, and they answer differently. */
    DISAGREE_N_KINDS,
    DISAGREE_NONE = DISAGREE_N_KINDS, /**< They answer alike. */
};

/** One picture. Texts are copied by disagree_add. */
struct disagree_sample {
    const char *file, *sha256; /**< CLASS/FILE. */
    const char *label;         /**< What it is. */
    const char *answer, *live_answer;
    double score, live_score; /**< Probability that each gives to its answer. */
};

/** How often each model takes a picture of `label` for `answer`, which is another class. */
struct disagree_confusion {
    const char *label, *answer;
    int64_t n, live_n;
};

struct disagree;

/** Aborts if memory is out. @param max  Of the sample; 1 to DISAGREE_KEPT_MAX. */
struct disagree *disagree_create(size_t max);
/** NULL is accepted. */
void disagree_destroy(struct disagree *disagree);

enum disagree_kind disagree_kind_of(const struct disagree_sample *sample);
/** "live-right", "candidate-right", "both-wrong". */
const char *disagree_kind_name(enum disagree_kind kind);

/** Cost: log of the sample's size where they differ, log of the pairs where one is wrong. */
void disagree_add(struct disagree *disagree, const struct disagree_sample *sample);

/** Pictures of a kind, of all that were added. */
int64_t disagree_count(const struct disagree *disagree, enum disagree_kind kind);

/** How many rows of each kind are chosen, of those there are: equal shares, and what one leaves to the
 *  others. The remainder goes to the first kinds. */
void disagree_share(const size_t n[DISAGREE_N_KINDS], size_t max, size_t out[DISAGREE_N_KINDS]);

/**
 * The sample: kind by kind, the most confident first.
 * @param rows  Of `max` elements; texts live as long as `disagree`, until the next disagree_add.
 * @return How many.
 */
size_t disagree_choose(struct disagree *disagree, struct disagree_sample *rows);

/** The most frequent wrong answers of both together, at most DISAGREE_CONFUSIONS_MAX. @return How many. */
size_t disagree_confusions(const struct disagree *disagree,
                           struct disagree_confusion out[DISAGREE_CONFUSIONS_MAX]);

#endif
