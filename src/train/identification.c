#include "train/identification.h"

weir_status train_identification(const struct weir_net_file *file, struct weir_dataset *dataset,
                                 int64_t n_seeds, struct weir_error *err)
{
    (void)file;
    (void)dataset;
    (void)n_seeds;
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED,
                          "the identification protocol for embeddings is not supported yet");
}
