/** The emulated GPU (emulated.h) as a back-end of nets: for tests of other domains, in place of
 *  weir_cuda_backend. */
#ifndef WEIR_NN_CUDA_EMULATED_BACKEND_H
#define WEIR_NN_CUDA_EMULATED_BACKEND_H

#include "nn/nn.h"

#include <stdbool.h>

/** Any thread. Lives for ever. */
const struct weir_backend *emulated_backend(void);

/** A back-end of a machine whose driver is not there: its nets are UNSUPPORTED. */
const struct weir_backend *emulated_backend_missing(void);

/** While it is set, every run fails, as those of a GPU that has failed do. Any thread. */
void emulated_set_failed(bool has_failed);

#endif
