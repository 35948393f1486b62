/* What other ranks say of themselves, and texts to be filled in: none crashes, and what is taken can
 * be written and read again. */
#include "agent/rendezvous/rendezvous.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_arena arena;
    struct weir_error err;
    struct rendezvous_member members[2] = {{"10.0.0.1", 1, "a"}, {"::1", 2, "b"}}, again;
    const struct rendezvous_known known = {members, 2, "eth0", "10.0.0.9", 3};
    char *out;
    weir_arena_init(&arena, 0);
    char *text = weir_arena_memdup(&arena, data, size);
    if (rendezvous_member_read(text, &members[0], &err) == WEIR_OK) {
        json_t *written = rendezvous_member_write(&members[0]);
        if (rendezvous_member_read(weir_json_text(written, &arena), &again, &err) != WEIR_OK ||
            strcmp(again.address, members[0].address) != 0 || again.port != members[0].port) {
            abort();
        }
        json_decref(written);
    }
    if (rendezvous_fill(text, &known, &arena, &out, &err) == WEIR_OK &&
        strlen(out) > RENDEZVOUS_TEXT_MAX) {
        abort();
    }
    weir_arena_fini(&arena);
    return 0;
}
