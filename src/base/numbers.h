/** Lists of whole numbers as people write them: "0-9", "1,3,5-9:2". Pure; any thread. */
#ifndef WEIR_BASE_NUMBERS_H
#define WEIR_BASE_NUMBERS_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** The largest number of a list. */
#define WEIR_NUMBERS_LARGEST 4000000

/**
 * Numbers, ranges FROM-TO and ranges FROM-TO:STEP, with commas between them: ascending, each once.
 * @param most  How many there may be.
 * @param out   At least one, in the arena.
 * @return INVALID with what is wrong, without its place; LIMIT for more than `most`.
 */
weir_status weir_numbers_parse(const char *text, size_t most, struct weir_arena *arena,
                               int64_t **out, size_t *out_n,
                               struct weir_error *err) WEIR_MUST_CHECK;

#endif
