/**
 * Folder identity: whether a folder that one machine names is the one that another sees under the same path. A
 * random name lies in DIR/folder.id; a machine that sees the same name there sees
 * the same folder.
 */
#ifndef WEIR_BASE_FOLDER_ID_H
#define WEIR_BASE_FOLDER_ID_H

#include "base/status.h"
#include "base/uuid.h"

#include <stdbool.h>

#define WEIR_FOLDER_ID "folder.id"

/**
 * The identity of a folder, made if it has none.
 * @param out  A UUID.
 * @return NOT_FOUND if there is no such folder; errors of the file. CORRUPT if what is there is no UUID.
 */
weir_status weir_folder_id(const char *dir, char out[WEIR_UUID_BYTES],
                           struct weir_error *err) WEIR_MUST_CHECK;

/** Is the folder that this machine has at `dir` the one with this identity? Nothing is made. */
bool weir_folder_is(const char *dir, const char *id);

#endif
