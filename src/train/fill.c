#include "train/fill.h"

#include "train/detect.h"

#include <string.h>

uint32_t train_fill(struct weir_net *net, const struct weir_dataset *dataset,
                    const struct weir_batch *batch, struct weir_shape shape, uint32_t first)
{
    size_t len = (size_t)shape.c * (size_t)shape.h * (size_t)shape.w;
    float *input = weir_net_input(net);
    int32_t *labels = weir_net_labels(net);
    uint32_t i_good = 0, n_labelled = 0, size = (uint32_t)weir_net_batch(net);
    while (i_good < batch->n_slots && batch->labels[i_good] < 0) {
        i_good++;
    }
    for (uint32_t i = 0; i < size; i++) {
        uint32_t slot = first + i;
        labels[i] = slot < batch->n_slots ? batch->labels[slot] : -1;
        if (labels[i] >= 0 && batch->samples != NULL) { /* else the pictures are made up */
            labels[i] = train_detect_target(net, dataset, i, batch->samples[slot]) ? labels[i] : -1;
        }
        n_labelled += labels[i] >= 0;
        if (labels[i] < 0 && i_good < batch->n_slots) {
            slot = i_good;
        }
        if (slot >= batch->n_slots) {
            memset(input + i * len, 0, len * sizeof *input);
        } else if (batch->images + slot * len != input + i * len) {
            memcpy(input + i * len, batch->images + slot * len, len * sizeof *input);
        }
    }
    return n_labelled;
}
