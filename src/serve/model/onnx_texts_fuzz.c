/* What Weir reads of ONNX files itself, beside src/onnx: texts, and whether other files are named. */
#include "external_data.h"
#include "onnx_texts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct onnx_texts texts;
    weir_arena_init(&arena, 0);
    bool is_read = onnx_texts_read(data, size, &arena, &texts, NULL) == WEIR_OK;
    for (size_t i = 0; is_read && i < texts.n; i++) {
        if (strncmp(texts.texts[i].key, "weir.", 5) != 0 || strlen(texts.texts[i].text) > size) {
            abort();
        }
    }
    (void)!external_data_refuse(data, size, NULL);
    weir_arena_fini(&arena);
    return 0;
}
