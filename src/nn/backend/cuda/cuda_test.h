/** What the files of nn_cuda_test share: the GPUs that its tests go through, two emulated ones and, where
 *  there is one, a real one. */
#ifndef WEIR_NN_CUDA_TEST_H
#define WEIR_NN_CUDA_TEST_H

#include "nn/backend/op.h"

#include "base/test_main.h"

#define N_GPUS 3

extern struct weir_backend gpus[N_GPUS];
/** N_GPUS, or one less without a real one. */
int n_gpus(void);

/* cuda_group_cases.c */

TCase *cuda_group_cases(void);
/** The program as one of several ranks that share a real GPU, which its test starts. */
int cuda_rank_main(int argc, char **argv);

#endif
