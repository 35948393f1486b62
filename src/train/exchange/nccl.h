/** The exchange by NCCL, for start.c: it is chosen before the net is made, which then keeps its
 *  gradients on the GPU. */
#ifndef WEIR_TRAIN_EXCHANGE_NCCL_H
#define WEIR_TRAIN_EXCHANGE_NCCL_H

#include "train/exchange/exchange.h"

/**
 * Compare the workers' GPUs: sets worker->exchange.is_on_gpus, alike on all workers. If it cannot be and
 * was not asked for by name, the log says why. Collective.
 *
 * @return UNSUPPORTED: it was asked for by name and cannot be; the communicator's failure; NOMEM.
 */
weir_status exchange_nccl_compare(struct worker *worker, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Make the GPUs a group. It clears is_on_gpus if that fails on any worker: the net is to be made again
 * then. Collective.
 *
 * @param created  How making the net went here. It is returned if it is a failure.
 * @return PEER: another worker could not make its net; as exchange_nccl_compare.
 */
weir_status exchange_nccl_open(struct worker *worker, weir_status created,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
