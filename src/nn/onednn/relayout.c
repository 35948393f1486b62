#include "relayout.h"

relayout_fn relayout_for(const struct relayout *layout)
{
#if defined(__x86_64__)
    bool is_known = layout->k % 16 == 0 && layout->c % 16 == 0 && layout->k_block > 0 &&
                    layout->k_block % 16 == 0 &&
                    layout->kernel_h * layout->kernel_w <= RELAYOUT_MAX_CELLS;
    bool has_v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_known && has_v4 ? relayout_v4 : NULL;
#else
    (void)layout;
    return NULL;
#endif
}
