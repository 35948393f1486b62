/**
 * Versions: the model versions that a process has loaded, beside each other, under one memory bound.
 *
 *     versions_load(versions, &wanted, err)     loads, warms up, checks, publishes; or a reason why not
 *     version = versions_get(versions, "digits", 3, err)      a reference
 *     batcher_submit(version->batcher, …)
 *     version_unref(version)                                  when the answer is written
 *
 * A version takes requests only after it has computed: zeros of one row and of a full batch, and the
 * golden inputs that came with it, whose answers are compared. Publishing is one pointer; requests in
 * flight end with the version they began with, which is freed after the last one, on a thread of its
 * own. Loading does not hold any request up.
 *
 * A version whose GPU has failed is taken out of service, and whoever made the versions is told: only a
 * new process can use the GPU again.
 *
 * The memory bound counts each version with the bytes of its file, or with what the process grew by
 * while it was loaded and warmed up, if that is more.
 *
 * Threads: any. Loads are done one after the other, on their callers' threads.
 */
#ifndef WEIR_SERVE_VERSIONS_H
#define WEIR_SERVE_VERSIONS_H

#include "base/json.h"
#include "serve/batch/batcher.h"
#include "serve/executor.h"
#include "serve/signature.h"

#include <stdatomic.h>

enum version_state { VERSION_LOADING, VERSION_READY, VERSION_FAILED, VERSION_UNLOADING };

/** "LOADING", "READY", "FAILED", "UNLOADING". */
const char *version_state_text(enum version_state state);

/** A loaded version: immutable, but for its batcher. */
struct version {
    atomic_int n_refs;
    const char *model;
    int64_t number;
    const char *blob; /**< What versions_load was given; "" for none. */
    struct weir_signature signature;
    bool joins; /**< Requests are joined into batches. */
    struct serve_model *executor;
    struct batcher *batcher;
    size_t memory_bytes;
    double load_ms;
    struct weir_arena arena; /**< Of the texts above. */
    struct versions *owner;
    struct version *next; /**< Of those that wait to be freed. */
};

/** What is to be loaded. Borrowed. */
struct version_wanted {
    const char *model;
    int64_t number;   /**< At least 1. */
    const char *path; /**< Of the model's file. */
    const char *blob; /**< Names the file's content: the same one is not loaded again. NULL: it
                                  is loaded each time. */
    const json_t *signature;               /**< NULL: made from the file and `extras`. */
    const struct signature_extras *extras; /**< NULL: none. */
    const char *golden; /**< Request and answer in the Open Inference Protocol's JSON (golden.h);
                             NULL: none. */
    size_t golden_len;
    struct batcher_rules rules;
};

struct versions_config {
    size_t memory_max_bytes; /**< Of all versions together; 0: no bound. */
    /** Each is loaded with these; batch_max is set by its rules. Texts are borrowed. */
    struct executor_options executor;
    /** A GPU has failed: called once, on a batcher's thread, which it must not hold up. The versions
     *  that ran there fail every request; the one that met it is LOADING, with the reason. NULL: nobody
     *  is told. */
    void (*on_broken)(void *context, const char *reason);
    void *context;
};

struct versions;

weir_status versions_create(const struct versions_config *config, struct versions **out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/** Frees what is loaded. Every reference must have been given back. NULL is accepted. */
void versions_destroy(struct versions *versions);

/**
 * Loads and publishes. A version of the same number and blob gets the rules only; of another blob it
 * is replaced when the new one is ready.
 * @return LIMIT: there is no room, with a sentence of what takes it; the version stays LOADING, so
 *         that the caller can make room and try again, or call versions_fail. Errors of the executor, the
 *         signature, and the golden check (CORRUPT). What served before serves on; without that the
 *         version is FAILED, with this reason, until it is loaded or unloaded.
 */
weir_status versions_load(struct versions *versions, const struct version_wanted *wanted,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** Other limits, for what is loaded from now on. Any thread. */
void versions_set_limits(struct versions *versions, size_t memory_max_bytes, int32_t n_threads);

/** Waits until no unloaded version takes memory any more: its requests in flight have ended. */
void versions_wait_freed(struct versions *versions);

/** Says that a version will be loaded (or why that cannot be), before there is a file to load. */
void versions_announce(struct versions *versions, const char *model, int64_t number);
void versions_fail(struct versions *versions, const char *model, int64_t number,
                   const char *reason);

/** Takes it out: requests in flight end, new ones do not find it. False: it was not there. */
bool versions_unload(struct versions *versions, const char *model, int64_t number);

/**
 * A reference to a version that is READY.
 * @param model   NULL: the one model that there is.
 * @param number  0: the highest READY one.
 * @return NOT_FOUND: there is no such model or version. UNAVAILABLE: it is loading, or failed.
 */
weir_status versions_get(struct versions *versions, const char *model, int64_t number,
                         struct version **out, struct weir_error *err) WEIR_MUST_CHECK;

/** Gives a reference back. NULL is accepted. */
void version_unref(struct version *version);

/** One row of a view. */
struct version_row {
    const char *model;
    int64_t number;
    enum version_state state;
    const char *reason;      /**< "" if there is none. */
    struct version *version; /**< A reference, held by the view; NULL unless it is READY. */
};

/** Which there are, by model and number. */
struct versions_view {
    struct version_row *rows;
    size_t n;
};

/** Memory in the arena, references in the view. */
void versions_view(struct versions *versions, struct weir_arena *arena, struct versions_view *out);
void versions_view_release(struct versions_view *view);

#endif
