/**
 * `weir-worker bench-allreduce`: how fast all-reduces are here, in the manner of nccl-tests.
 *
 * Starts its ranks here, over ssh or by srun (spawn.h), or is one rank of a group that somebody
 * else started (--rank). For each size it checks the result against the serial sum, element by
 * element, and then measures. A sample is a barrier and then as many all-reduces as take about 100
 * us (one, if it takes longer); its time is that of the slowest rank; the time of a size is the
 * median of its samples.
 *
 *     algorithm bandwidth = bytes / time      what the caller sees
 *     bus bandwidth = algbw * 2(P-1)/P        comparable with the speed of a link, for any P
 */
#ifndef WEIR_COMM_BENCH_H
#define WEIR_COMM_BENCH_H

/** argv[0] is the role. @return the exit status: CORRUPT's if a sum was wrong, or the failure's. */
int weir_comm_bench_main(int argc, char **argv);

#endif
