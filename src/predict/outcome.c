#include "predict/outcome.h"

#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Room for "/" and a number; a key that leaves none is cut, and its hash says which it was. */
#define PART_BYTES 24

const char *frame_part_key(const struct frame *frame, size_t i, char out[FRAME_KEY_BYTES])
{
    if (!frame->is_keyed) {
        (void)snprintf(out, FRAME_KEY_BYTES, "%s/%" PRId64 "/%zu", frame->camera, frame->number, i);
    } else if (strlen(frame->key) + PART_BYTES < FRAME_KEY_BYTES) {
        (void)snprintf(out, FRAME_KEY_BYTES, "%s/%zu", frame->key, i);
    } else {
        (void)snprintf(out, FRAME_KEY_BYTES, "%.*s~%016" PRIx64 "/%zu",
                       (int)(FRAME_KEY_BYTES - 2 * PART_BYTES), frame->key,
                       weir_hash_text(WEIR_HASH_BEGIN, frame->key), i);
    }
    return out;
}

json_t *outcome_find(struct outbox *outbox, const struct frame *frame)
{
    char key[FRAME_KEY_BYTES];
    json_t *one = outbox_find(outbox, frame->key);
    if (one != NULL) {
        return one;
    }
    json_t *all = json_array();
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        one = outbox_find(outbox, frame_part_key(frame, i, key));
        if (one == NULL) {
            json_decref(all);
            return NULL;
        }
        const json_t *of = json_object_get(json_object_get(one, "box"), "of");
        n = i == 0 && of != NULL ? (size_t)json_integer_value(of) : n;
        json_array_append_new(all, one);
    }
    return json_pack("{s:s,s:o}", "camera", frame->camera, "decisions", all);
}
