/* The models of tf_cnn_benchmarks, and what they are called here. */
#include "bench/training.h"

#include <string.h>

/* Batches: per device, as over there. Speeds: training_fabric.c. */
// clang-format off
static const struct training_model models[] = {
    {.name = "trivial",        .batch_size = 32},
    {.name = "lenet",          .batch_size = 32},
    {.name = "alexnet",        .batch_size = 512, .p100_speed = 2987, .p100_batch = 512},
    {.name = "googlenet",      .batch_size = 32},
    {.name = "vgg11",          .batch_size = 64},
    {.name = "vgg16",          .batch_size = 64, .p100_speed = 154, .p100_batch = 64},
    {.name = "vgg19",          .batch_size = 64},
    {.name = "inception3",     .zoo = "inception_v3", .batch_size = 32, .p100_speed = 142, .p100_batch = 64},
    {.name = "inception_v3",   .batch_size = 32, .p100_speed = 142, .p100_batch = 64},
    {.name = "inception4",     .zoo = "inception_v4", .batch_size = 32},
    {.name = "inception_v4",   .batch_size = 32},
    {.name = "resnet50",       .batch_size = 64, .p100_speed = 219, .p100_batch = 64},
    {.name = "resnet50_v1.5",  .zoo = "resnet50", .batch_size = 64, .p100_speed = 219, .p100_batch = 64},
    {.name = "resnet50_v1",    .batch_size = 64, .p100_speed = 219, .p100_batch = 64},
    {.name = "resnet50_v2",    .batch_size = 64},
    {.name = "resnet101",      .batch_size = 32},
    {.name = "resnet101_v2",   .batch_size = 32},
    {.name = "resnet152",      .batch_size = 32, .p100_speed = 91.8, .p100_batch = 64},
    {.name = "resnet152_v2",   .batch_size = 32},
    {.name = "mobilenet",      .zoo = "mobilenet_v2", .batch_size = 32},
    {.name = "densenet",       .zoo = "densenet121", .batch_size = 64},
    {.name = "overfeat",       .advice = "alexnet is nearest"},
    {.name = "nasnet",         .advice = "inception4 or mobilenet are of its size"},
    {.name = "nasnetlarge",    .advice = "inception4 is of its size"},
    {.name = "ssd300",         .advice = "it detects; vgg16 is what it is made from"},
    {.name = "ncf",            .advice = "it recommends; mlp is of its kind"},
    {.name = "deepspeech2",    .advice = "it has recurrent layers, which the product has not"},
    {.name = "densenet40_k12", .advice = "densenet121 is the densely connected one"},
    {.name = "densenet100_k12", .advice = "densenet121 is the densely connected one"},
    {.name = "densenet100_k24", .advice = "densenet121 is the densely connected one"},
};
// clang-format on

#define USUAL_BATCH 32

struct training_model training_model_find(const char *name)
{
    for (size_t i = 0; i < WEIR_ARRAY_LEN(models); i++) {
        if (strcmp(models[i].name, name) == 0) {
            return models[i];
        }
    }
    return (struct training_model){.name = name, .batch_size = USUAL_BATCH};
}
