#include "winograd_private.h"

const struct winograd_kernels *winograd_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512cd")) {
        return &winograd_kernels_avx512;
    }
#endif
    return NULL;
}

/* Rows whose distance is a power of two would share few sets of a cache. */
static size_t apart(size_t n)
{
    return winograd_round_up(n, WINOGRAD_LANES) + WINOGRAD_LANES;
}

static struct winograd_blocks cut(const struct winograd_form *f, size_t n_out, size_t n_block)
{
    struct winograd_blocks b = {0};
    size_t n_down = ((size_t)f->out_h + WINOGRAD_OUT - 1) / WINOGRAD_OUT;
    b.n_across = ((size_t)f->out_w + WINOGRAD_OUT - 1) / WINOGRAD_OUT;
    b.n_image = n_down * b.n_across;
    b.n_patches = (size_t)f->n * b.n_image;
    size_t n_blocks = (b.n_patches + n_block - 1) / n_block;
    b.n_block = (b.n_patches + n_blocks - 1) / n_blocks;
    b.in_row = apart((size_t)f->c);
    b.out_row = apart(winograd_round_up(n_out, WINOGRAD_PANEL));
    b.in_point = b.n_block * b.in_row;
    b.out_point = b.n_block * b.out_row;
    b.n_part = n_out;
    return b;
}

/* Patches of a block. More patches read the kernels' points less often; fewer stay in cache.
 * Measured with 28 to 112 and 56 to 224, whose times differ by less than a tenth. */
#define BLOCK          56
#define GRADIENT_BLOCK 112

/* Output channels whose points a gradient keeps. More channels transform x less often and take more
 * memory of each thread. */
#define GRADIENT_PART       128
#define GRADIENT_PART_BYTES ((size_t)5 << 20)

struct winograd_blocks winograd_blocks(const struct winograd_form *form)
{
    return cut(form, (size_t)form->k, BLOCK);
}

struct winograd_blocks winograd_gradient_blocks(const struct winograd_form *form)
{
    size_t n_k = winograd_round_up((size_t)form->k, WINOGRAD_PANEL);
    size_t n_fitting = GRADIENT_PART_BYTES / (WINOGRAD_POINTS * (size_t)form->c * sizeof(float));
    size_t n_part = WEIR_MAX(n_fitting / WINOGRAD_PANEL, (size_t)1) * WINOGRAD_PANEL;
    return cut(form, WEIR_MIN(n_k, WEIR_MIN(n_part, (size_t)GRADIENT_PART)), GRADIENT_BLOCK);
}

size_t winograd_points_bytes(int32_t c, int32_t k)
{
    return WINOGRAD_POINTS * (size_t)c * winograd_round_up((size_t)k, WINOGRAD_PANEL) *
           sizeof(float);
}

size_t winograd_scratch_bytes(const struct winograd_form *form)
{
    const struct winograd_blocks b = winograd_blocks(form);
    return WINOGRAD_POINTS * (b.in_point + b.out_point) * sizeof(float);
}

size_t winograd_gradient_scratch_bytes(const struct winograd_form *form)
{
    const struct winograd_blocks b = winograd_gradient_blocks(form);
    size_t n_floats = WINOGRAD_POINTS * (b.in_point + b.out_point + (size_t)form->c * b.n_part);
    return (n_floats + b.n_part) * sizeof(float) + b.n_part * sizeof(double);
}
