/** JSON values as YAML: the other way round of weir_yaml_parse (base/json.h). */
#ifndef WEIR_BASE_YAML_WRITE_H
#define WEIR_BASE_YAML_WRITE_H

#include "base/buf.h"
#include "base/json.h"

/**
 * Write a value as YAML that means the same to every reader, of YAML 1.1 as of 1.2; weir_yaml_parse gives it back. With
 * `multi` it is an array of documents. Texts without NUL characters only.
 *
 * @param out  Appended to.
 * @return LIMIT or NOMEM; `out` then holds a part.
 */
weir_status weir_yaml_write(const json_t *value, bool multi, struct weir_buf *out) WEIR_MUST_CHECK;

/** Is this text the same to every reader without quotes? Some that would be are told as not. */
bool weir_yaml_is_plain(const char *text);

#endif
