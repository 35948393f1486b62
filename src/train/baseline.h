/**
 * Baseline: the distribution of the training data under the trained model, to which monitors
 * compare live data.
 *
 * {"brightness": histogram, "contrast", "sharpness", "entropy": histograms, "score": histogram,
 * "embedding": ...} (stats/histogram.h, look.h, embedding.h). Brightness is
 * weir_net_input_brightness of each picture; the next three are weir_look_at's of what
 * weir_net_input_grey makes of it. Only nets that give embeddings have an "embedding". Embeddings (embed.h) have a "score": the best cosine
 * similarity of each picture to the other pictures of its person (leave one out). People with one
 * picture have none. The "score" of a classifier is the probability of the likeliest label, of the
 * validation data if there are any, else of the training data.
 */
#ifndef WEIR_TRAIN_BASELINE_H
#define WEIR_TRAIN_BASELINE_H

#include "train/task.h"

/** Most pictures in it, and scenes, which are composed for it; of more the seed chooses. */
#define TRAIN_BASELINE_MAX        10000
#define TRAIN_BASELINE_SCENES_MAX 500

/**
 * Compute the baseline.
 *
 * @param net  Trained; its input is overwritten.
 * @param out  JSON text in the arena.
 * @return CORRUPT if no picture can be read; NOMEM.
 */
weir_status train_baseline(const struct train_task *task, const struct weir_net_input *input,
                           struct weir_net *net, struct weir_arena *arena, char **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The best similarity of each of n unit vectors of `dim` values to the others with its label; NaN
 * if there is no other. Pure. Cost: dim multiplications per pair with the same label.
 */
void train_genuine_scores(const float *vectors, const int32_t *labels, size_t n, size_t dim,
                          double *out_scores);

#endif
