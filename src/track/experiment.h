/**
 * Experiments: named folders of runs in a project, with tags. Every project has one called "Default",
 * which has the runs that name no other. One that is deleted keeps its name and its runs, and can be
 * restored. Each function runs inside the caller's transaction.
 */
#ifndef WEIR_TRACK_EXPERIMENT_H
#define WEIR_TRACK_EXPERIMENT_H

#include "base/arena.h"
#include "base/record.h"
#include "store/store.h"

#define WEIR_EXPERIMENT_DEFAULT "Default"
/* In bytes: of 500, 512, 250 and 5,000 characters. */
#define WEIR_EXPERIMENT_NAME_MAX      2000
#define WEIR_EXPERIMENT_LOCATION_MAX  2048
#define WEIR_EXPERIMENT_TAG_KEY_MAX   1000
#define WEIR_EXPERIMENT_TAG_VALUE_MAX 20000

struct weir_experiment {
    int64_t id; /**< 0: "Default" of the project "default". */
    char *project;
    char *name;              /**< Once in a project. */
    char *artifact_location; /**< Where its runs' artifacts go; NULL: to the server. */
    char *created_by;
    int64_t created_ms;
    int64_t updated_ms;
    int64_t deleted_ms; /**< 0: it is there. */
};

/** A name and a text: a tag or a parameter. */
struct weir_tag {
    char *key;
    char *value;
};

extern const struct weir_resource weir_experiment_resource;

/**
 * Make an experiment: project, name, artifact_location, created_by and created_ms are read.
 * @param out_id  Its number.
 * @return EXISTS if the project has one of that name, deleted or not; INVALID for a name that is empty
 *         or too long, or a project that is not there.
 */
weir_status weir_experiment_create(struct weir_txn *txn, const struct weir_experiment *experiment,
                                   int64_t *out_id, struct weir_error *err) WEIR_MUST_CHECK;

/** The number of the project's experiment of this name, which is made if it is not there. A deleted one
 *  is found, too. */
weir_status weir_experiment_ensure(struct weir_txn *txn, const char *project, const char *name,
                                   const char *actor, int64_t now_ms, int64_t *out_id,
                                   struct weir_error *err) WEIR_MUST_CHECK;

/** By number, deleted or not. @return NOT_FOUND. */
weir_status weir_experiment_get(struct weir_txn *txn, int64_t id, struct weir_arena *arena,
                                struct weir_experiment *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** By name, deleted or not. @return NOT_FOUND. */
weir_status weir_experiment_find(struct weir_txn *txn, const char *project, const char *name,
                                 struct weir_arena *arena, struct weir_experiment *out,
                                 struct weir_error *err) WEIR_MUST_CHECK;

/** @return NOT_FOUND, EXISTS, INVALID as for a new one; CONFLICT if it is deleted. */
weir_status weir_experiment_rename(struct weir_txn *txn, int64_t id, const char *name,
                                   int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;

/** Mark it and its runs as deleted, or restore those that went with it. CONFLICT if it is so already, or
 *  is the "Default" of its project, which stays. */
weir_status weir_experiment_delete(struct weir_txn *txn, int64_t id, int64_t now_ms,
                                   struct weir_error *err) WEIR_MUST_CHECK;
weir_status weir_experiment_restore(struct weir_txn *txn, int64_t id, int64_t now_ms,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/** Set a tag, or take the new value. INVALID for a key or value over its maximum. */
weir_status weir_experiment_tag(struct weir_txn *txn, int64_t id, const struct weir_tag *tag,
                                int64_t now_ms, struct weir_error *err) WEIR_MUST_CHECK;
/** @return NOT_FOUND. */
weir_status weir_experiment_untag(struct weir_txn *txn, int64_t id, const char *key, int64_t now_ms,
                                  struct weir_error *err) WEIR_MUST_CHECK;
/** By key. */
weir_status weir_experiment_tags(struct weir_txn *txn, int64_t id, struct weir_arena *arena,
                                 struct weir_tag **out, size_t *out_n,
                                 struct weir_error *err) WEIR_MUST_CHECK;

#endif
