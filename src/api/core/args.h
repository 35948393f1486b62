/** What routes read of a request's body: its members. INVALID says which, and why. The query is in query.h. */
#ifndef WEIR_API_ARGS_H
#define WEIR_API_ARGS_H

#include "api/core/call.h"
#include "base/record.h"

/** Text in a body that belongs to no record: as a record's. */
#define API_TEXT_MAX_BYTES WEIR_FIELD_TEXT_MAX_BYTES

/** Member of the JSON body: text (NULL if absent or null; at most API_TEXT_MAX_BYTES), integer,
 * true or false. */
weir_status api_body_text(const struct api_call *call, const char *name, const char **out,
                          struct weir_error *err) WEIR_MUST_CHECK;
weir_status api_body_int(const struct api_call *call, const char *name, int64_t fallback,
                         int64_t *out, struct weir_error *err) WEIR_MUST_CHECK;
weir_status api_body_bool(const struct api_call *call, const char *name, bool fallback, bool *out,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** $.project names a project that the caller sees. @return NOT_FOUND. */
weir_status api_check_project(struct api_call *call, struct weir_txn *txn, const char *name,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Text that a person will read: of at most so many bytes, and without control characters, which could
 * act on a terminal. NULL is plain. */
bool api_is_plain(const char *text, size_t max_bytes);

/** Refuse members of the body that are not among `names` (ended by NULL). */
weir_status api_body_only(const struct api_call *call, const char *const *names,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Is it one of these words, which blanks separate? NULL are none. Pure. */
bool api_words_have(const char *words, const char *word);

#endif
