#include "../reference/kernels.h"

const struct weir_backend weir_onednn_backend = {
    .name = "onednn",
    .is_channels_last = true,
    .kernels = ref_kernels_f32,
};
