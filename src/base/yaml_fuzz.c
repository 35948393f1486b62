/** YAML from outside: any bytes give a value or an error with a sentence. */
#include "base/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error err = {0};
    json_t *value = NULL;
    if (weir_yaml_parse((const char *)data, size, "fuzz", true, &value, &err) != WEIR_OK) {
        if (value != NULL || err.message[0] == '\0') {
            abort();
        }
        return 0;
    }
    char *text = json_dumps(value, JSON_COMPACT);
    if (text == NULL) {
        abort(); /* what was read must be writable */
    }
    free(text);
    json_decref(value);
    return 0;
}
