#include "nn/net_embed.h"

#include <math.h>
#include <string.h>

static void mirror(const struct weir_shape *shape, float *tensor)
{
    size_t w = (size_t)shape->w, n_rows = (size_t)shape->c * (size_t)shape->h;
    for (size_t row = 0; row < n_rows; row++, tensor += w) {
        for (size_t x = 0; x < w / 2; x++) {
            float kept = tensor[x];
            tensor[x] = tensor[w - 1 - x];
            tensor[w - 1 - x] = kept;
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

weir_status weir_net_embed(struct weir_net *net, const struct weir_shape *shape, int32_t n,
                           size_t dim, float *out)
{
    size_t len = (size_t)shape->c * (size_t)shape->h * (size_t)shape->w;
    size_t n_values = (size_t)n * dim;
    WEIR_TRY(weir_net_forward(net, n, NULL));
    memcpy(out, weir_net_output(net), n_values * sizeof *out);
    for (int32_t i = 0; i < n; i++) {
        mirror(shape, weir_net_input(net) + (size_t)i * len);
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
