/** Score: how well a net does on labelled pictures. */
#ifndef WEIR_TRAIN_SCORE_H
#define WEIR_TRAIN_SCORE_H

#include "comm/comm.h"
#include "data/data.h"
#include "nn/net_file.h"
#include "train/detect.h"

struct train_score {
    double loss;              /**< Mean of the pictures'. */
    double accuracy;          /**< Fraction of the pictures that the net is right about. */
    uint64_t n;               /**< Pictures measured; damaged ones are left out. */
    struct train_found found; /**< A detector has it. */
};

struct train_score_config {
    struct weir_dataset *dataset;
    const struct weir_net_input *input;
    struct weir_comm *comm; /**< Its workers share the pictures; NULL: this process takes all. */
    unsigned n_threads;     /**< Threads that decode. */
};

/**
 * Measure every picture once, in inference mode, in batches of the net's size. The net's input and
 * labels are overwritten. Collective in config->comm: all get the figures of all pictures.
 *
 * @return CORRUPT if no picture can be read; a collective's failure; NOMEM.
 */
weir_status train_score_measure(struct weir_net *net, const struct train_score_config *config,
                                struct train_score *out, struct weir_error *err) WEIR_MUST_CHECK;

#endif
