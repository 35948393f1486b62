#include "nn/gpu_given.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A list ends for CUDA at the first entry that names no GPU. */
bool weir_gpu_is_given(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    return text != NULL && text[0] != '\0' && text[0] != '-' && strcmp(text, "NoDevFiles") != 0;
}

weir_status weir_gpu_memory_given(size_t *out, struct weir_error *err)
{
    const char *text = getenv("WEIR_DEVICE_MEMORY");
    char *end = NULL;
    if (text == NULL || text[0] == '\0') {
        *out = 0;
        return WEIR_OK;
    }
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || text[0] == '-' || n == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$WEIR_DEVICE_MEMORY must be a number of bytes, not \"%s\"", text);
    }
    *out = (size_t)n;
    return WEIR_OK;
}
