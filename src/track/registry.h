/**
 * Registry: what models and their versions have beside their records (track.h): a place in a catalogue
 * before there is a version, descriptions, tags, stages. Each function runs inside the caller's
 * transaction, and sees of models what that shows.
 *
 * A stage is one of four words; it says what people think of a version, and changes nothing that runs.
 */
#ifndef WEIR_TRACK_REGISTRY_H
#define WEIR_TRACK_REGISTRY_H

#include "track/experiment.h"
#include "track/track.h"

#define WEIR_MODEL_TAG_KEY_MAX   250
#define WEIR_MODEL_TAG_VALUE_MAX 100000
#define WEIR_MODEL_TAGS_MAX      1000 /**< Of one model, or of one version. */

#define WEIR_STAGE_NONE       "None"
#define WEIR_STAGE_STAGING    "Staging"
#define WEIR_STAGE_PRODUCTION "Production"
#define WEIR_STAGE_ARCHIVED   "Archived"

/** The stage of that name, whatever its case; NULL: there is none. Pure. */
const char *weir_stage_of(const char *text);

/**
 * Make a model without a version: name, project, description, created_by and created_ms are read. One
 * that was deleted is there again, and its numbers go on.
 * @return INVALID: not a name; EXISTS.
 */
weir_status weir_model_create(struct weir_txn *txn, const struct weir_model *model,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND. */
weir_status weir_model_describe(struct weir_txn *txn, const char *name, const char *description,
                                int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Give a model another name, with its versions, aliases and tags. What else names it the caller has looked
 * for. @return NOT_FOUND; INVALID: not a name; EXISTS; CONFLICT: a deployment names it.
 */
weir_status weir_model_rename(struct weir_txn *txn, const char *name, const char *new_name,
                              int64_t now_ms, struct weir_arena *arena,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Set a tag. @return INVALID for a key or value over its maximum; LIMIT. */
weir_status weir_model_tag(struct weir_txn *txn, const char *model, const struct weir_tag *tag,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** Take a tag away; none is OK. */
weir_status weir_model_untag(struct weir_txn *txn, const char *model, const char *key,
                             struct weir_error *err) WEIR_MUST_CHECK;
/** All of a model, by key. */
weir_status weir_model_tags(struct weir_txn *txn, const char *model, struct weir_arena *arena,
                            struct weir_tag **out, size_t *out_n,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** The same of a version, by its identifier. */
weir_status weir_version_tag(struct weir_txn *txn, const char *version, const struct weir_tag *tag,
                             struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_version_untag(struct weir_txn *txn, const char *version, const char *key,
                               struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_version_tags(struct weir_txn *txn, const char *version, struct weir_arena *arena,
                              struct weir_tag **out, size_t *out_n,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** Set a version's description. @param version  Its description and updated_ms change with it. */
weir_status weir_version_describe(struct weir_txn *txn, struct weir_model_version *version,
                                  const char *description, int64_t now_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;

/** Set a version's stage, and if wanted archive the others of that stage. @param stage  Of weir_stage_of. */
weir_status weir_version_set_stage(struct weir_txn *txn, struct weir_model_version *version,
                                   const char *stage, bool archives_others, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** The newest version in each stage that has one; `stage` NULL: of all. At most four, by version. */
weir_status weir_model_latest(struct weir_txn *txn, const char *model, const char *stage,
                              struct weir_arena *arena, struct weir_model_version **out,
                              size_t *out_n, struct weir_error *err) WEIR_MUST_CHECK;

/** WEIR_OK, or CONFLICT with why this version cannot be served. Pure. */
weir_status weir_version_check_servable(const struct weir_model_version *version,
                                        struct weir_error *err) WEIR_MUST_CHECK;

#endif
