/**
 * Shares: how the requests of a deployment are divided among versions of its model.
 *
 *     "v3=90,v4=10"    people write; "3=90,4=10" and aliases, "stable=90,v4=10", too
 *     [{"version": 3, "percent": 90}, {"version": 4, "percent": 10}]    programs do
 *
 * Kept in millionths, which always sum to a million. Pure; any thread.
 */
#ifndef WEIR_DEPLOY_SHARES_H
#define WEIR_DEPLOY_SHARES_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/** A replica loads all versions of its deployment: those with a share, a mirror, and those that go. */
#define WEIR_SHARES_MAX 16
#define WEIR_SHARES_PPM 1000000

struct weir_share {
    int64_t version;
    int64_t ppm; /**< 1 to a million. */
};

struct weir_shares {
    struct weir_share items[WEIR_SHARES_MAX]; /**< By version, each once. */
    size_t n;
};

/** A model, as far as shares care. */
struct weir_share_model {
    const char *name;
    const int64_t *versions; /**< Of the model, ascending. */
    size_t n_versions;

    const struct weir_share_alias {
        const char *alias;
        int64_t version;
    } * aliases;

    size_t n_aliases;
};

/**
 * The version that a word names: "v3", "3" or an alias.
 * @param where  For the message: "$.traffic".
 * @return NOT_FOUND with what there is, and the alias that was probably meant.
 */
weir_status weir_share_version_read(const struct weir_share_model *model, const char *word,
                                    size_t len, const char *where, int64_t *out,
                                    struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Read shares from text or from an array.
 * @return INVALID (form, sum that is not 100, a version named twice, a share that is none), LIMIT
 *         over WEIR_SHARES_MAX, NOT_FOUND as above.
 */
weir_status weir_shares_read(const struct weir_share_model *model, const json_t *value,
                             const char *where, struct weir_shares *out,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** The whole of it for one version. */
struct weir_shares weir_shares_of(int64_t version);

/** [{"version", "percent"}]; a new reference. */
json_t *weir_shares_to_json(const struct weir_shares *shares);

/** "v3=90,v4=10", in the arena; "none" for none. */
char *weir_shares_text(const struct weir_shares *shares, struct weir_arena *arena);

#endif
