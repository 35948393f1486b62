/**
 * Conv choices: which of cuDNN's configurations was the fastest for a shape on a GPU. Measuring takes
 * seconds for a net, and disturbs what else runs there; a net that is made after another of the same
 * shapes, such as the next version of a model, takes the same choices.
 *
 * Of the process, as its GPUs are. The newest CONV_CHOICES_MAX are kept. Threads: any.
 */
#ifndef WEIR_NN_CUDA_CONV_CHOICES_H
#define WEIR_NN_CUDA_CONV_CHOICES_H

#include "gpu.h"

#define CONV_CHOICES_MAX 1024

/** Place among the configurations of `mode`; -1: nobody has measured. The shape's padding is zero. */
int conv_choices_find(int device, const struct gpu_conv_shape *shape, unsigned mode);

/** Keeps it for those that come later; an older choice of the same is forgotten. */
void conv_choices_keep(int device, const struct gpu_conv_shape *shape, unsigned mode, int i_config);

#endif
