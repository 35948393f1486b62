/** Native: what the files of one version share. */
#ifndef WEIR_DNN_NATIVE_H
#define WEIR_DNN_NATIVE_H

#include "dnn.h"

#if DNNL_VERSION_MAJOR == 2

/** oneDNN's own layout; NULL stays NULL. */
static inline const dnnl_memory_desc_t *native_of(const struct weir_dnn_layout *layout)
{
    return layout != NULL ? (const dnnl_memory_desc_t *)(const void *)layout->native.bytes : NULL;
}

#else

/** oneDNN's own layout, to be destroyed; NULL stays NULL. */
dnnl_status_t native_open(const struct weir_dnn_layout *layout, dnnl_memory_desc_t *out);

#endif

#endif
