#include "emulated_backend.h"

#include "emulated.h"
#include "nn/backend/op.h"

#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct weir_backend emulated, missing;

static weir_status open_emulated(const struct weir_net_config *config, int32_t n_threads,
                                 void **out, struct weir_error *err)
{
    (void)n_threads;
    return cuda_open_on(&gpu_emulated_ops, config, out, err);
}

static weir_status open_missing(const struct weir_net_config *config, int32_t n_threads, void **out,
                                struct weir_error *err)
{
    (void)config;
    (void)n_threads;
    (void)out;
    return weir_error_set(err, WEIR_ERR_UNSUPPORTED, "the driver is not there");
}

static void make(void)
{
    emulated = missing = weir_cuda_backend;
    emulated.open = open_emulated;
    missing.open = open_missing;
}

const struct weir_backend *emulated_backend(void)
{
    (void)pthread_once(&once, make);
    return &emulated;
}

const struct weir_backend *emulated_backend_missing(void)
{
    (void)pthread_once(&once, make);
    return &missing;
}

void emulated_set_failed(bool has_failed)
{
    emulated_has_failed = has_failed;
}
