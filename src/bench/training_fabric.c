/*
 * An emulated network: what share of its time an accelerator on G-Gigabit Ethernet would spend
 * sending, and what speed of links gives the processors here the same share. Pure.
 *
 * P100: tensorflow/docs, "Benchmarks" of May 2017, synthetic data, one P100 of a DGX-1. The V100
 * has ResNet-50's published 370 images/s, and for other models as many times the P100's speed.
 */
#include "bench/training.h"

#include <string.h>

#define P100_RESNET50 219.0
#define V100_RESNET50 370.0

/* Two per multiply-add, three passes: ResNet-50 of torchvision. */
#define RESNET50_TRAIN_FLOP (3 * 2 * 4.089e9)
#define USUAL_BATCH         64

double training_busiest_bytes(enum training_exchange exchange, double gradient_bytes, int n_workers,
                              int n_servers)
{
    if (exchange == TRAINING_INDEPENDENT || n_workers < 1) {
        return 0;
    }
    if (exchange == TRAINING_SERVERS) {
        double at_server = gradient_bytes * n_workers / WEIR_MAX(n_servers, 1);
        return WEIR_MAX(gradient_bytes, at_server);
    }
    return 2.0 * (n_workers - 1) / n_workers * gradient_bytes;
}

weir_status training_accelerator_step_s(const char *accelerator, const struct training_model *model,
                                        double flop_per_image, double *out_s,
                                        struct weir_error *err)
{
    double faster = strcmp(accelerator, "p100") == 0   ? 1
                    : strcmp(accelerator, "v100") == 0 ? V100_RESNET50 / P100_RESNET50
                                                       : 0;
    if (faster == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "accelerator: \"%.40s\" is neither p100 nor v100", accelerator);
    }
    bool is_published = model->p100_speed > 0;
    double speed =
        is_published ? model->p100_speed : P100_RESNET50 * RESNET50_TRAIN_FLOP / flop_per_image;
    double batch = is_published ? (double)model->p100_batch : USUAL_BATCH;
    *out_s = batch / (speed * faster);
    return WEIR_OK;
}
