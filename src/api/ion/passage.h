/**
 * Passages: what a replica says of the frames that a decision rests on, and their pictures, the *film*.
 *
 * A decision's `passage` has `frames`, each with `bytes`, how long its picture is in the film: pictures of the frames one behind the
 * other. The best frame's picture is the decision's own, and not in the film. The server keeps picture and film in one place of a pack
 * (decision.h of ion), and says of each frame whether its picture is kept (`has_picture`).
 */
#ifndef WEIR_API_ION_PASSAGE_H
#define WEIR_API_ION_PASSAGE_H

#include "base/json.h"
#include "ion/decision.h"

struct api_call;

/** Is it what a replica may say? NULL is. @return INVALID: the sentence begins with "$.passage". */
weir_status api_passage_check(const char *passage, struct weir_error *err) WEIR_MUST_CHECK;

/** How long the film of these frames is; 0: they have none. @param passage  JSON or NULL. */
size_t api_passage_film_bytes(const char *passage);

/** Write into the decision's passage which frames have a picture: those of the film, if film_bytes say that it is kept, and the
 *  best, if the decision has its own. */
void api_passage_tell(struct weir_decision *decision, struct weir_arena *arena);

/**
 * Where the picture of frame i begins in what is kept of the decision, and its length.
 * @return NOT_FOUND, with a sentence: there is no such frame, or it has no picture.
 */
weir_status api_passage_find(const struct weir_decision *decision, const char *frame,
                             size_t *out_offset, size_t *out_len,
                             struct weir_error *err) WEIR_MUST_CHECK;

#endif
