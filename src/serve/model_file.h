/**
 * Model file: a version's file, loaded as its signature says.
 */
#ifndef WEIR_SERVE_MODEL_FILE_H
#define WEIR_SERVE_MODEL_FILE_H

#include "serve/executor.h"
#include "serve/signature.h"

/** What is known of a version before its file is read. */
struct model_name {
    const char *name, *id, *blob;
    int64_t version;
    const struct executor_options *executor; /**< Device, precision, library; NULL: the defaults. */
    const json_t *signature; /**< As it stands with the version; NULL: what the file says. */
};

/** Load a version's file as its signature says, by the executor and with the shapes that it names; without one by the executor that
 *  suits the file. @param out_signature  That, or what the file itself says; in the arena. *out is the caller's on errors, too, if it is
 *  set. @return As executor_load and weir_signature_make. */
weir_status model_file_load(const char *path, const struct model_name *name, size_t batch,
                            struct weir_arena *arena, struct serve_model **out,
                            struct weir_signature *out_signature,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
