/**
 * Wino: convolutions of 3x3 kernels with stride 1 by Winograd's minimal filtering F(4x4, 3x3) (Lavin
 * and Gray, arXiv 1509.09308) in f32, on blocks of eight channels (oneDNN's nChw8c), for processors
 * with AVX2. Sixteen results take 36 multiplications instead of 144.
 *
 *     y = A' [ (G g G') . (B' x B) ] A
 *
 * The polynomial's points are 0, +-5/8, +-3/2 and infinity, which lose less to rounding than the
 * usual 0, +-1, +-2. Kernels are transformed once.
 */
#ifndef WEIR_ONNX_FAST_WINO_H
#define WEIR_ONNX_FAST_WINO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Channels are multiples of 8. */
struct wino_form {
    int64_t n, c, h, w, k, out_h, out_w;
    int64_t pad_h, pad_w; /**< Above and left; those below and right follow from the output. */
};

/** y = x * kernels + bias + added, then between low and high; negative values times slope first. */
struct wino {
    struct wino_form form;
    const float *x, *points, *bias; /**< bias: NULL or k values. */
    const float *added;             /**< Of y's size, and may be y; NULL: nothing. */
    float slope, low, high;
    float *y;
    void *scratch;
};

/** Can this processor, and does it pay beside a direct convolution? */
bool wino_pays(const struct wino_form *form, int32_t n_threads);

size_t wino_points_bytes(int64_t c, int64_t k);
/** Transforms k x c x 3 x 3 weights, which are multiplied by a factor for each k (NULL: 1). */
void wino_points(const float *weights, const float *factors, int64_t c, int64_t k, float *out);

size_t wino_scratch_bytes(const struct wino_form *form, int32_t n_threads);
void wino_run(const struct wino *job, int32_t n_threads);

#endif
