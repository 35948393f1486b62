#include "relayout.h"

static bool has_kernels(const struct relayout *layout)
{
#if defined(__x86_64__)
    bool is_known = layout->k % 16 == 0 && layout->c % 16 == 0 && layout->k_block > 0 &&
                    layout->k_block % 16 == 0 &&
                    layout->kernel_h * layout->kernel_w <= RELAYOUT_MAX_TAPS &&
                    (!layout->is_c_inner || (!layout->is_bf16 && layout->k_block == 16)) &&
                    (!layout->is_transposed || !layout->is_c_inner) &&
                    (!layout->is_mirrored || layout->is_transposed);
    bool has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_known && has_v4;
#else
    (void)layout;
    return false;
#endif
}

relayout_fn relayout_for(const struct relayout *layout)
{
    return has_kernels(layout) ? relayout_v4 : NULL;
}

relayout_fn relayout_back_for(const struct relayout *layout)
{
    bool is_known = !layout->is_bf16 && !layout->is_c_inner && !layout->is_transposed;
    return is_known && has_kernels(layout) ? relayout_back_v4 : NULL;
}
