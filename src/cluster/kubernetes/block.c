#include "cluster/kubernetes/block.h"

#include "base/arena.h"

#include <string.h>

static const char *text_at(const void *object, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)object + offset, sizeof text);
    return text;
}

void *kubernetes_block(const void *object, size_t size, const size_t *texts, size_t n_texts)
{
    size_t total = size;
    for (size_t i = 0; i < n_texts; i++) {
        const char *text = text_at(object, texts[i]);
        total += text != NULL ? strlen(text) + 1 : 0;
    }
    char *block = weir_xalloc(total), *at = block + size;
    memcpy(block, object, size);
    for (size_t i = 0; i < n_texts; i++) {
        const char *text = text_at(object, texts[i]);
        if (text != NULL) {
            size_t len = strlen(text) + 1;
            memcpy(at, text, len);
            const char *copy = at;
            memcpy(block + texts[i], &copy, sizeof copy);
            at += len;
        }
    }
    return block;
}
