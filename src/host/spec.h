/**
 * Spec: what a replica is told at its start (spec.json), and the documents of the server, read by tables.
 *
 * Every replica's spec.json holds
 *
 *     {"replica": "digits-1", "dir": "/…/replicas/JOB-0", "server": "https://…", "token_file": "token",
 *      "ca_file": "/…", …what is hosted is told}
 *
 * "server" is what the server takes itself for; $WEIR_SERVER and $WEIR_CA_FILE, from the agent, which knows
 * the way to it, win (host/program.h). It may be absent, as may "ca_file": the system's authorities. "dir" is the
 * replica's durable folder.
 */
#ifndef WEIR_HOST_SPEC_H
#define WEIR_HOST_SPEC_H

#include "base/arena.h"
#include "base/json.h"
#include "client/client.h"

/** First in the struct of what is told to what is hosted. */
struct weir_host_spec {
    char *replica, *dir, *server, *token_file, *ca_file;
};

/** A text of an object, not empty. */
struct weir_host_text {
    const char *key;
    size_t offset; /**< There is a char * there; NULL: the object has none. */
    bool is_required;
};

/** An integer of an object. */
struct weir_host_int {
    const char *key;
    size_t offset; /**< There is an int64_t there. */
    int64_t fallback, lo, hi;
};

/** What is told beside. */
struct weir_host_spec_form {
    const struct weir_host_text *texts;
    size_t n_texts;
    /** The rest; may change what is read. NULL: there is none. */
    weir_status (*read)(json_t *root, struct weir_arena *arena, void *out, struct weir_error *err);
};

/**
 * Read the file.
 * @param out  A struct, which begins with a weir_host_spec and is zeroed. Text lives in the arena.
 * @return INVALID with the place of what is wrong, or as `read`, behind the file's name.
 */
weir_status weir_host_spec_load(const char *path, const struct weir_host_spec_form *form,
                                struct weir_arena *arena, void *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

/** A client of its server, which there must be. */
weir_status weir_host_client_open(const struct weir_host_spec *spec, int64_t timeout_ms,
                                  struct weir_client **out, struct weir_error *err) WEIR_MUST_CHECK;

/** @param where  Of the object: "$". @return INVALID: "$.batch_max: expected an integer from 1 to 16". */
weir_status weir_host_read_ints(const json_t *object, const char *where,
                                const struct weir_host_int *rows, size_t n_rows, void *out,
                                struct weir_error *err) WEIR_MUST_CHECK;

#endif
