/**
 * Pictures from the loader into a net. A step gives a net the slots of its share of the batch, all
 * at once or, with micro_batches, in several runs.
 */
#ifndef WEIR_TRAIN_FILL_H
#define WEIR_TRAIN_FILL_H

#include "data/data.h"
#include "nn/nn.h"

/**
 * Copy slots [first, first + the net's batch) into the net's input and labels, and of scenes the targets. Slots without a
 * label, and those after the last, get a copy of another picture, so that batch norm sees no black
 * ones. Nothing is copied if the batch lies in the net's input already.
 *
 * @param dataset  That the batch is of; NULL: of none, and targets stay as they are.
 * @param shape  Of one picture.
 * @return The number of slots with a label.
 */
uint32_t train_fill(struct weir_net *net, const struct weir_dataset *dataset,
                    const struct weir_batch *batch, struct weir_shape shape, uint32_t first);

#endif
