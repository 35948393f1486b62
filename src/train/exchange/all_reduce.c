/* All-reduce: every worker gets the sum of all gradients, while the backward pass runs, and updates
 * all weights. */
#include "train/exchange/exchange.h"

static weir_status post(struct worker *worker, size_t first_elem, size_t n_elems)
{
    return weir_comm_allreduce_post(worker->comm, worker->gradients + first_elem, n_elems);
}

const struct exchange_strategy exchange_all_reduce = {
    .name = "all-reduce",
    .doc = "every worker updates all weights from the summed gradients",
    .post = post,
    .wait = exchange_wait_all,
    .finish = exchange_update_all};
