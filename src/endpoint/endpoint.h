/**
 * Endpoints: where frames come from (sources) and where decisions go (sinks), as far as server and
 * replica must agree on it: names, what each is, its options and limits. Pure.
 *
 * The server checks, documents and lists an ION's endpoints with these tables, and stores them as
 * they were written; the replica reads them with the same tables into the kind's struct
 * (endpoint/source/directory.h), which its own code for that kind gets (predict/source.h).
 *
 * A secret option is called "token", "password" or "secret": stored documents are masked by these names
 * (WEIR_ION_SECRETS, WEIR_JOB_SECRETS). In place of its value a document may name a secret of the project
 * (job/secret.h): {"kind": "http", "secrets": ["token=door-token"]}. The replica finds the value in its
 * environment, in a variable that is named after the place: SOURCE_TOKEN, SINK_0_SECRET, SOURCE_CAMERAS_2_PASSWORD.
 */
#ifndef WEIR_ENDPOINT_ENDPOINT_H
#define WEIR_ENDPOINT_ENDPOINT_H

#include "base/kind.h"

/** Sinks of one pipeline. */
#define WEIR_ENDPOINT_SINKS_MAX 16

/** What the server knows of a kind beside its options; NULL: nothing. */
struct weir_endpoint_ops {
    /** Check what no table of options can say. The place that the message begins with is ".OPTION". */
    weir_status (*check)(const void *options, struct weir_error *err);
    /** Member that is a list of objects with options of their own, which may name secrets as the endpoint itself
     *  does, and the kind that such an object is; NULL: there is none. */
    const char *items;
    const struct weir_kind *item;
};

extern const struct weir_registry weir_sources;
extern const struct weir_registry weir_sinks;

#define WEIR_KIND(name) extern const struct weir_kind weir_source_##name##_kind;
#include "endpoint/sources.def"
#undef WEIR_KIND
#define WEIR_KIND(name) extern const struct weir_kind weir_sink_##name##_kind;
#include "endpoint/sinks.def"
#undef WEIR_KIND

/**
 * Read the source and the sinks of a pipeline or replica.
 *
 * @param source  {"kind": …}
 * @param sinks   An array of {"kind": …}; NULL or null: none.
 * @param where   Where both lie: "$.pipelines[0]".
 * @param out_sinks  Room for WEIR_ENDPOINT_SINKS_MAX.
 * @return INVALID, UNSUPPORTED or LIMIT with the place of what is wrong.
 */
weir_status weir_endpoints_read(const json_t *source, const json_t *sinks, const char *where,
                                struct weir_arena *arena, struct weir_configured *out_source,
                                struct weir_configured *out_sinks, size_t *out_n_sinks,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** An option that takes its value from a secret of the project. */
struct weir_endpoint_secret {
    json_t *endpoint;     /**< The source or the sink, or the object in its list. */
    const char *option;   /**< "token" */
    const char *variable; /**< "SINK_0_TOKEN" */
    const char *name;     /**< Of the secret. */
};

typedef void (*weir_endpoint_secret_fn)(void *context, const struct weir_endpoint_secret *secret);

/** Call fn with each secret that they name, in order. What weir_endpoints_read refuses is passed over. */
void weir_endpoints_secrets(json_t *source, json_t *sinks, weir_endpoint_secret_fn fn,
                            void *context);

/** Call fn with every path of them (weir_options_paths). */
weir_status weir_endpoints_paths(const json_t *source, const json_t *sinks, const char *where,
                                 weir_option_path_fn fn, void *context) WEIR_MUST_CHECK;

#endif
