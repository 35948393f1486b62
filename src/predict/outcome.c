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

/* What a detector found, or that it found nothing, has a box or null; a decision about a whole frame has no such
 * member. A source may name a frame as another one's part is named. */
static json_t *find(struct outbox *outbox, const char *key, bool is_part)
{
    json_t *one = outbox_find(outbox, key);
    if (one != NULL && (json_object_get(one, "box") != NULL) != is_part) {
        json_decref(one);
        one = NULL;
    }
    return one;
}

json_t *outcome_find_part(struct outbox *outbox, const char *key)
{
    return find(outbox, key, true);
}

json_t *outcome_find(struct outbox *outbox, const struct frame *frame)
{
    char key[FRAME_KEY_BYTES];
    json_t *one = find(outbox, frame->key, false);
    if (one != NULL) {
        return one;
    }
    json_t *all = json_array();
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        one = outcome_find_part(outbox, frame_part_key(frame, i, key));
        if (one == NULL) {
            json_decref(all);
            return NULL;
        }
        const json_t *of = json_object_get(json_object_get(one, "box"), "of");
        n = i == 0 && of != NULL ? (size_t)json_integer_value(of) : n;
        json_array_append_new(all, one);
    }
    /* Their camera, not this frame's: one key may be given to frames of two. */
    return json_pack("{s:O,s:o}", "camera", json_object_get(json_array_get(all, 0), "camera"),
                     "decisions", all);
}
