/* A deployment of any bytes that are JSON. */
#include "predict/deployment.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *json;
    struct weir_arena arena;
    struct weir_error err;
    struct deployment found;
    if (weir_json_parse((const char *)data, size, "input", &json, &err) != WEIR_OK) {
        return 0;
    }
    weir_arena_init(&arena, 0);
    if (deployment_parse(json, &arena, &found, &err) == WEIR_OK &&
        (strlen(found.model.blob) != 64 || found.has_gallery != (found.gallery_blob != NULL) ||
         (found.has_gallery && strlen(found.gallery_blob) != 64) ||
         (found.impostors_blob != NULL && strlen(found.impostors_blob) != 64))) {
        abort();
    }
    weir_arena_fini(&arena);
    json_decref(json);
    return 0;
}
