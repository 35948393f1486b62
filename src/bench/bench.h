/**
 * bench: how fast this machine, or a group of them, trains networks and adds up gradients.
 *
 * Two measurements, each a role of weir-worker (`weir bench train` and `weir bench allreduce` start
 * it). Both start their own ranks, here, over ssh or by srun (bench/spawn.h), unless a launcher has
 * made this process one of them. Both print text for people or JSON.
 *
 * Training: flags and output are those of tf_cnn_benchmarks where they mean something here. What is
 * measured is the product's own step (train/worker.h): the net, the sum of gradients overlapped
 * with the backward pass, and the optimiser or the parameter servers. Pictures and labels are
 * random and the same in every step, unless --data-dir names some.
 *
 *     weir-worker bench-train --model resnet50 --batch-size 16 --num-batches 20 -o json
 *
 * All-reduces: in the manner of nccl-tests. For each size the result is compared with the serial
 * sum, element by element, before it is measured. A sample is a barrier, and then as many
 * all-reduces as take about 100 us (one, if one takes longer); its time is that of the slowest
 * rank. The time of a size is the median of its samples.
 *
 *     algorithm bandwidth = bytes / time      what the caller sees
 *     bus bandwidth = algbw * 2(P-1)/P        comparable with the speed of a link, for any P
 */
#ifndef WEIR_BENCH_BENCH_H
#define WEIR_BENCH_BENCH_H

/**
 * `bench-train`. Prints to stdout; a failure as one sentence to stderr.
 *
 * @param argv  argv[0] is the role, the rest its options. Borrowed.
 * @return The exit status: 0, or the failure's (weir_status_exit).
 */
int weir_bench_training_main(int argc, char **argv);

/** `bench-allreduce`, likewise. The exit status is CORRUPT's if a sum was wrong. */
int weir_bench_allreduce_main(int argc, char **argv);

#endif
