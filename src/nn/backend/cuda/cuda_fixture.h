/** What the tests of this back-end share: the GPUs that they go through, and nets on them. */
#ifndef WEIR_NN_CUDA_FIXTURE_H
#define WEIR_NN_CUDA_FIXTURE_H

#include "nn/backend/compare_nets.h"
#include "nn/backend/cuda/emulated/emulated.h"
#include "nn/optimizer.h"

#include "base/test_main.h"

/** Two emulated GPUs, with and without a library's convolutions, and a real one where there is one. */
#define N_GPUS 3
extern struct weir_backend gpus[N_GPUS];
int n_gpus(void);

/** A real GPU plans each convolution by measuring: of many nets it takes every sixth. */
static inline bool is_passed_over(int i_gpu, uint64_t seed)
{
    return i_gpu == N_GPUS - 1 && seed % 6 != 0;
}

/** compared_net with one thread. */
struct weir_net *make_net(const struct weir_graph *graph, struct weir_net_config config);
/** Two training steps, the first recorded and the second played, and inference of all images and of some: on
 *  a GPU as by the reference, in f32. */
void compare_on_gpu(const struct weir_graph *graph, int i_gpu, int32_t batch, double tolerance,
                    bool keeps_all, const char *what);
/** A step and inference in bf16 or fp16, against the reference with its rounding. The tolerance is of outputs
 *  and loss, as lengths of vectors. @return How far the gradients are apart; no more than 0.15. */
double compare_in_halves(const struct weir_graph *graph, int i_gpu, enum weir_precision precision,
                         double tolerance, const char *what);
/** Of "adam:epsilon=1e-7" or the like, with a weight decay of 0.01. */
struct weir_optimizer *make_optimizer(const char *rule, struct weir_net *net);
/** A convolution, a batch norm with its ReLU, and a linear. */
struct weir_graph *small_graph(void);

/** The tests of cuda_fp16_test.c and of the others. @return Their number. */
size_t cuda_fp16_tests(const TTest **out);
size_t cuda_ahead_tests(const TTest **out);
size_t cuda_groups_tests(const TTest **out);

#endif
