/**
 * Wanted: what the server wants a replica of a deployment to load (GET
 * /api/v1/deployments/{name}/desired), as a struct.
 *
 *     {"revision": 7, "batch_max": 16, "delay_max_us": 2000, "queue_max": 256,
 *      "memory_max_bytes": 0, "n_threads": 2,
 *      "versions": [{"version": 3, "blob": "<sha256>", "bytes": 1234, "signature": {…},
 *                    "golden": "<sha256>"}],
 *      "live": [3]}
 *
 * "golden" names the file of golden inputs (golden.h), and may be absent. Revision 0: nothing is wanted yet.
 */
#ifndef WEIR_SERVE_WANTED_H
#define WEIR_SERVE_WANTED_H

#include "base/file.h"
#include "base/json.h"
#include "serve/batch/batcher.h"

#define WANTED_VERSIONS_MAX 64

struct wanted_one {
    int64_t number;
    char blob[WEIR_SHA256_TEXT_BYTES];
    const json_t *signature;             /**< NULL: none. Borrowed from the document. */
    char golden[WEIR_SHA256_TEXT_BYTES]; /**< "": none. */
};

struct wanted {
    int64_t revision;
    struct batcher_rules rules;
    size_t memory_max_bytes;
    int32_t n_threads;
    struct wanted_one versions[WANTED_VERSIONS_MAX];
    size_t n_versions;
};

/** What is read borrows from the document. @return INVALID with the place of what is wrong; LIMIT over WANTED_VERSIONS_MAX. */
weir_status wanted_parse(const json_t *json, struct wanted *out,
                         struct weir_error *err) WEIR_MUST_CHECK;

#endif
