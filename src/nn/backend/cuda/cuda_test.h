/** Groups in nn_cuda_test: its main function starts them. */
#ifndef WEIR_NN_CUDA_TEST_H
#define WEIR_NN_CUDA_TEST_H

#include "base/test_main.h"

/* cuda_group_cases.c */

TCase *cuda_group_cases(void);
/** The program as one of several ranks that share a real GPU, which its test starts. */
int cuda_rank_main(int argc, char **argv);

#endif
