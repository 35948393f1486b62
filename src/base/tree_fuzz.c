/** Manifests from outside: any bytes give an error with a sentence, or a tree that is written as the same
 *  bytes and leaves its folder nowhere. */
#include "base/tree.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entry(const struct weir_tree_entry *entry)
{
    if (entry->path[0] == '/' || strstr(entry->path, "//") != NULL ||
        strncmp(entry->path, "../", 3) == 0 || strstr(entry->path, "/../") != NULL ||
        (entry->kind == WEIR_TREE_LINK && entry->target[0] == '/')) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_error err = {0};
    struct weir_tree tree;
    struct weir_arena arena;
    struct weir_buf text;
    weir_arena_init(&arena, 0);
    weir_buf_init(&text, WEIR_TREE_TEXT_MAX + 1);
    if (weir_tree_parse((const char *)data, size, &arena, &tree, &err) == WEIR_OK) {
        for (size_t i = 0; i < tree.n; i++) {
            check_entry(&tree.entries[i]);
        }
        if (weir_tree_write(&tree, &text, &err) != WEIR_OK || text.len != size ||
            memcmp(text.data, data, size) != 0) {
            abort();
        }
    } else if (err.message[0] == '\0') {
        abort();
    }
    weir_buf_fini(&text);
    weir_arena_fini(&arena);
    return 0;
}
