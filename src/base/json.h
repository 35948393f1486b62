/**
 * JSON (jansson) and YAML (libyaml) at the edge: text in, a `json_t` tree out, errors that name
 * file and line. Inside Weir nothing is passed as JSON: records are read by base/record.h.
 */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include "base/arena.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Parse one JSON value. `what` names the source in errors. Duplicate keys, NUL in keys and depth
 *  over 64 are refused. The caller owns *out (json_decref). */
weir_status weir_json_parse(const char *text, size_t len, const char *what, json_t **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * At least as many as the JSON values (and keys) in this text, whether it is well-formed or not:
 * each takes memory, however few bytes it is written with ("[[],[],…]").
 */
size_t weir_json_count(const char *text, size_t len);

/** Read and parse a file of at most max_bytes. */
weir_status weir_json_load(const char *path, size_t max_bytes, json_t **out,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Compact text in the arena. */
char *weir_json_text(const json_t *value, struct weir_arena *arena);

/** A string, a new reference; NULL is null, and what is no UTF-8 becomes `otherwise`. */
json_t *weir_json_string(const char *text, const char *otherwise);

/** Thousandths as the number that they are: 2000 is 2, 500 is 0.5. A new reference. */
json_t *weir_json_milli(int64_t milli);

/* What is not known is null: NULL, what is not finite, and the time 0. New references. */
json_t *weir_json_real(double value);
json_t *weir_json_time(int64_t time_ms); /**< RFC 3339. */

/**
 * Parse YAML (core schema: null, bool, int, float, string; maps with string keys; sequences) into
 * JSON values. One document per call with `multi` false; with true *out is an array of documents.
 * Anchors and aliases, tags, duplicate keys, depth over 64 and input over 1 MiB are refused with
 * the line in the message.
 */
weir_status weir_yaml_parse(const char *text, size_t len, const char *what, bool multi,
                            json_t **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Free a json_t * variable; for WEIR_AUTO(weir_json_auto_free). */
void weir_json_auto_free(json_t **value);

/** Can this text be part of JSON? Other bytes make every json_pack with them fail. */
bool weir_text_is_utf8(const char *text);

#endif
