#include "train/embed.h"

#include "train/task.h"

#include <math.h>
#include <string.h>

static void mirror(const struct weir_shape *shape, const float *from, float *to)
{
    size_t w = (size_t)shape->w, n_rows = (size_t)shape->c * (size_t)shape->h;
    for (size_t row = 0; row < n_rows; row++, from += w, to += w) {
        for (size_t x = 0; x < w; x++) {
            to[x] = from[w - 1 - x];
        }
    }
}

static void to_unit_length(float *vector, size_t dim)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) {
        squares += (double)vector[i] * (double)vector[i];
    }
    double factor = squares > 0 ? 1 / sqrt(squares) : 0;
    for (size_t i = 0; i < dim; i++) {
        vector[i] = (float)(vector[i] * factor);
    }
}

weir_status train_embed_batch(struct weir_net *net, const struct weir_net_input *input,
                              const float *tensors, int32_t n, size_t dim, float *out)
{
    const struct weir_shape *shape = &input->shape;
    size_t len = (size_t)shape->c * (size_t)shape->h * (size_t)shape->w;
    size_t n_values = (size_t)n * dim;
    float *to = weir_net_input(net);
    memcpy(to, tensors, (size_t)n * len * sizeof *to);
    WEIR_TRY(weir_net_forward(net, n, NULL));
    memcpy(out, weir_net_output(net), n_values * sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        mirror(shape, tensors + (size_t)i * len, to + (size_t)i * len);
    }
    WEIR_TRY(weir_net_forward(net, n, NULL));
    const float *mirrored = weir_net_output(net);
    for (size_t i = 0; i < n_values; i++) {
        out[i] += mirrored[i];
    }
    for (int32_t i = 0; i < n; i++) {
        to_unit_length(out + (size_t)i * dim, dim);
    }
    return WEIR_OK;
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
