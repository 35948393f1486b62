/**
 * Results: where the files of a batch prediction go: a folder of the user's, or the server, which
 * keeps them with the job (GET /api/v1/jobs/{id}/results).
 *
 *     batch.json            what is predicted, so that a folder is not filled by two different ones
 *     shard-00000.jsonl …   rows (row.h)
 *     manifest.json         written when all shards are there (manifest.h)
 *
 * A file has its name only once it is whole and durable. Who is killed and begins again leaves out the
 * shards that are there; tasks that write the same file write the same bytes.
 *
 * Threads: one at a time.
 */
#ifndef WEIR_BATCH_RESULTS_H
#define WEIR_BATCH_RESULTS_H

#include "batch/spec.h"

#include "base/buf.h"
#include "client/client.h"

#include <stdbool.h>

#define RESULTS_FILE_MAX_BYTES ((size_t)512 << 20)

/** Names of files that are there, by bytes. */
struct results_names {
    char **names;
    size_t n, cap;
};

struct batch_results;

/** A place for them. */
struct results_ops {
    weir_status (*list)(struct batch_results *results, struct results_names *out,
                        struct weir_error *err);
    weir_status (*read)(struct batch_results *results, const char *name, struct weir_buf *out,
                        struct weir_error *err);
    weir_status (*write)(struct batch_results *results, const char *name, const void *bytes,
                         size_t len, struct weir_error *err);
};

struct batch_results {
    const struct results_ops *ops;
    const struct batch_spec *spec; /**< Borrowed. */
    struct weir_client *client;    /**< Borrowed; NULL: there is no server. */
    struct results_names names;    /**< As of the last look. */
};

extern const struct results_ops results_folder, results_server;

/** The spec's folder, which is made if it is not there, or the server; looked at. */
weir_status batch_results_open(const struct batch_spec *spec, struct weir_client *client,
                               struct batch_results *out, struct weir_error *err) WEIR_MUST_CHECK;
void batch_results_close(struct batch_results *results);

/** Look again at what is there. */
weir_status batch_results_look(struct batch_results *results,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Was a file there when it was looked at? Cost: log n. */
bool batch_results_has(const struct batch_results *results, const char *name);

/** The bytes of a file, into the buffer, which is emptied before. */
weir_status batch_results_read(struct batch_results *results, const char *name,
                               struct weir_buf *out, struct weir_error *err) WEIR_MUST_CHECK;

/** Makes a file, whole and durable or not at all. A server that does not answer is asked again for some
 *  minutes. */
weir_status batch_results_write(struct batch_results *results, const char *name, const void *bytes,
                                size_t len, struct weir_error *err) WEIR_MUST_CHECK;

/** For places: takes a copy of the name. */
void results_names_add(struct results_names *names, const char *name);

#endif
