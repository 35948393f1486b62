/**
 * `weir-worker bench-train`: how fast this machine, or a group of them, trains a network.
 *
 * Flags and output are those of tf_cnn_benchmarks where they mean something here; what is measured
 * is the product's own step: the net, the sum of gradients overlapped with backward, the optimiser
 * or the parameter servers. Pictures and labels are random and the same in every step, unless
 * --data-dir names some. Without hosts all ranks run here; otherwise they are started over ssh or
 * by srun (comm/spawn.h).
 *
 *     weir-worker bench-train --model resnet50 --batch-size 16 --num-batches 20 -o json
 */
#ifndef WEIR_TRAIN_BENCH_H
#define WEIR_TRAIN_BENCH_H

/** argv[0] is the role. The exit status. */
int weir_train_bench_main(int argc, char **argv);

#endif
