#include "train/embed.h"

#include "nn/net_embed.h"
#include "train/task.h"

#include <string.h>

weir_status train_embed_batch(struct weir_net *net, const struct weir_net_input *input,
                              const float *tensors, int32_t n, size_t dim, float *out)
{
    const struct weir_shape *shape = &input->shape;
    size_t len = (size_t)shape->c * (size_t)shape->h * (size_t)shape->w;
    memcpy(weir_net_input(net), tensors, (size_t)n * len * sizeof *tensors);
    return weir_net_embed(net, shape, n, dim, out);
}

weir_status train_embed_dataset(struct weir_net *net, const struct weir_net_input *input,
                                struct weir_dataset *dataset, size_t dim, float *out,
                                struct weir_error *err)
{
    const struct weir_loader_config config = {.input = train_data_input(input),
                                              .batch = (uint32_t)weir_net_batch(net),
                                              .n_epochs = 1,
                                              .tail = WEIR_TAIL_PAD,
                                              .on_damage = WEIR_ON_DAMAGE_FATAL,
                                              .n_threads = 1};
    struct weir_loader *loader = NULL;
    struct weir_batch batch;
    WEIR_TRY(weir_loader_create(dataset, &config, &loader, err));
    weir_status status;
    while ((status = weir_loader_next(loader, &batch, err)) == WEIR_OK) {
        /* Without shuffling the samples of a batch come first and in order. */
        status = train_embed_batch(net, input, batch.images, (int32_t)batch.n_valid, dim, out);
        if (status != WEIR_OK) {
            (void)weir_error_set(err, status, "embedding: %s", weir_status_text(status));
            break;
        }
        out += batch.n_valid * dim;
    }
    weir_loader_destroy(loader);
    return status == WEIR_ERR_END ? WEIR_OK : status;
}
