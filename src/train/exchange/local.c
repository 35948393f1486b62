/* One worker, whose gradients are complete before it updates: with several runs to a step, or
 * with an optimiser that needs norms. */
#include "train/exchange/exchange.h"

const struct exchange_strategy exchange_local = {.name = "local",
                                                 .doc = "one worker, after its backward pass",
                                                 .post = exchange_post_nothing,
                                                 .wait = exchange_wait_all,
                                                 .finish = exchange_update_all};
