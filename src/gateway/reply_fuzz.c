/* Any bytes: read or refused, within the body's limit, and alike whole and one by one. */
#include "gateway/reply.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reply whole, pieces;
    size_t taken = 0, at = 0;
    reply_init(&whole, 4096);
    reply_init(&pieces, 4096);
    weir_status by_whole = reply_feed(&whole, (const char *)data, size, &taken);
    weir_status by_pieces = WEIR_OK;
    while (by_pieces == WEIR_OK && at < size) {
        size_t one = 0;
        by_pieces = reply_feed(&pieces, (const char *)data + at, 1, &one);
        at += one;
    }
    must(by_whole == by_pieces);
    if (by_whole == WEIR_OK || by_whole == WEIR_ERR_END) {
        must(at == taken && whole.body.len == pieces.body.len);
        must(memcmp(whole.body.data, pieces.body.data, whole.body.len) == 0);
        must(reply_close(&whole) == reply_close(&pieces));
    }
    reply_fini(&whole);
    reply_fini(&pieces);
    return 0;
}
