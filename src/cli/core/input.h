/** What a person gives as a file: a file, "-" for standard input, or what a shell puts in its place: <(…). */
#ifndef WEIR_CLI_INPUT_H
#define WEIR_CLI_INPUT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/status.h"

#include <stddef.h>

/**
 * Read it whole, with a NUL behind it, into the arena.
 * @return As weir_file_read; INVALID for "-" at a terminal, where nothing would come and nothing say so.
 */
weir_status cli_input_read(const char *path, size_t max_bytes, struct weir_arena *arena, char **out,
                           size_t *out_len, struct weir_error *err) WEIR_MUST_CHECK;

/** The same as YAML, of which JSON is a part: a document, or with is_many an array of all. A new reference. */
weir_status cli_input_yaml(const char *path, size_t max_bytes, bool is_many,
                           struct weir_arena *arena, json_t **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/**
 * The files that a person names: a file, or those of a folder that end in .yaml, .yml or .json, by name.
 * @return INVALID: a folder without any; LIMIT; as opendir.
 */
weir_status cli_input_files(const char *path, struct weir_arena *arena, char ***out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Say in a document whose it is, unless it says that itself. NULL: nobody said it. */
void cli_input_project(json_t *document, const char *project);

#endif
