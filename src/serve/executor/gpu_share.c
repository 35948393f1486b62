#include "gpu_share.h"

#include "base/macros.h"
#include "nn/gpu_given.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t taken_bytes; /* Under lock. */

/* What a net may take; 0: all that the GPU has. Lock held. */
static weir_status room(size_t most_bytes, size_t *out, struct weir_error *err)
{
    size_t given;
    WEIR_TRY(weir_gpu_memory_given(&given, err));
    if (given > 0 && taken_bytes >= given) {
        return weir_error_set(err, WEIR_ERR_LIMIT,
                              "the models of this process take %zu MiB of the GPU's memory, and it "
                              "was given %zu: ask for a larger share",
                              taken_bytes >> 20, given >> 20);
    }
    size_t left = given > 0 ? given - taken_bytes : SIZE_MAX;
    size_t most = WEIR_MIN(left, most_bytes > 0 ? most_bytes : SIZE_MAX);
    *out = most < SIZE_MAX ? most : 0;
    return WEIR_OK;
}

static weir_status create(const struct weir_net_file *file, struct weir_net_config *config,
                          size_t most_bytes, struct weir_net **out, struct weir_error *err)
{
    WEIR_TRY(room(most_bytes, &config->gpu_memory_bytes, err));
    weir_status status = weir_net_file_create_net(file, config, out, err);
    if (status == WEIR_ERR_NOMEM) {
        status = WEIR_ERR_LIMIT; /* whoever makes room may try again */
        err->status = status;
    }
    if (status == WEIR_OK) {
        taken_bytes += weir_net_memory_bytes(*out);
    }
    return status;
}

weir_status gpu_share_create_net(const struct weir_net_file *file, struct weir_net_config config,
                                 size_t most_bytes, struct weir_net **out, struct weir_error *err)
{
    struct weir_error own;
    err = err != NULL ? err : &own;
    (void)pthread_mutex_lock(&lock);
    weir_status status = create(file, &config, most_bytes, out, err);
    (void)pthread_mutex_unlock(&lock);
    return status;
}

void gpu_share_destroy_net(struct weir_net *net)
{
    if (net == NULL) {
        return;
    }
    size_t bytes = weir_net_memory_bytes(net);
    weir_net_destroy(net);
    (void)pthread_mutex_lock(&lock);
    taken_bytes -= bytes;
    (void)pthread_mutex_unlock(&lock);
}

size_t gpu_share_taken(void)
{
    (void)pthread_mutex_lock(&lock);
    size_t bytes = taken_bytes;
    (void)pthread_mutex_unlock(&lock);
    return bytes;
}
