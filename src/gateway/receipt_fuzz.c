/* Any text: what is taken is what is made of what was read, and the key is needed for that. */
#include "gateway/receipt.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned char key[WEIR_RECEIPT_KEY_BYTES] = {1};
    struct weir_arena arena;
    struct weir_receipt read;
    char again[WEIR_RECEIPT_BYTES];
    weir_arena_init(&arena, 0);
    char *text = weir_arena_printf(&arena, "%.*s", (int)size, (const char *)data);
    if (weir_receipt_open(key, text, &arena, &read, NULL) == WEIR_OK) {
        weir_receipt_make(key, &read, again);
        if (strcmp(again, text) != 0) {
            abort();
        }
    }
    weir_arena_fini(&arena);
    return 0;
}
