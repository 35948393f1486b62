/* Any bytes: the reader refuses them or can read every tensor it lists, whole, inside the file. */
#include "nn/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_safetensors *file = NULL;
    struct weir_error err;
    if (weir_safetensors_open_memory(data, size, "input", &file, &err) != WEIR_OK) {
        return 0;
    }
    size_t n = 0;
    const struct weir_safetensors_entry *entries = weir_safetensors_entries(file, &n);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].n_bytes > size || entries[i].first_byte > size - entries[i].n_bytes) {
            abort();
        }
        /* Exactly as many elements, so that the sanitizer sees one too many. */
        float *values = malloc(entries[i].n_elems * sizeof *values + 1);
        weir_status status =
            weir_safetensors_read_f32(file, entries[i].name, values, entries[i].n_elems, &err);
        if (status != WEIR_OK && status != WEIR_ERR_UNSUPPORTED) {
            abort();
        }
        free(values);
    }
    weir_safetensors_close(file);
    return 0;
}
