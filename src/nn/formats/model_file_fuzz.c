/* Any bytes: refused, or a spec whose text gives the same text again; graphs may be built of it. */
#include "nn/model_file.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_model_spec *spec = NULL, *again = NULL;
    struct weir_error err;
    /* A copy of exact size: a reader of text must not look for its NUL. */
    char *text = malloc(size + (size == 0));
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    weir_status status = weir_model_spec_parse(text, size, "input", &spec, &err);
    free(text);
    if (status != WEIR_OK) {
        return 0;
    }
    const char *canonical = weir_model_spec_text(spec);
    if (strlen(canonical) <= WEIR_MODEL_FILE_MAX_BYTES) {
        if (weir_model_spec_parse(canonical, strlen(canonical), "again", &again, &err) != WEIR_OK ||
            strcmp(canonical, weir_model_spec_text(again)) != 0) {
            abort();
        }
        weir_model_spec_destroy(again);
    }
    struct weir_graph *graph = NULL;
    if (weir_model_spec_build(spec, 10, &graph, &err) == WEIR_OK) {
        if (weir_graph_n_parameters(graph) < 0) {
            abort();
        }
        weir_graph_destroy(graph);
    }
    weir_model_spec_destroy(spec);
    return 0;
}
