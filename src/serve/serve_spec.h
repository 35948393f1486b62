/**
 * Spec of a replica of a deployment (spec.json of a job of kind `serve`):
 *
 *     {"deployment": "digits", "replica": "digits-1", "dir": "/…/replicas/JOB-0",
 *      "server": "https://…", "token_file": "token", "ca_file": "/…", "listen": "0.0.0.0:0",
 *      "secret": "…"}
 *
 * "server" is what the server takes itself for; $WEIR_SERVER and $WEIR_CA_FILE, from the agent, who
 * knows the way to it, win. "dir" is the replica's durable folder.
 */
#ifndef WEIR_SERVE_SERVE_SPEC_H
#define WEIR_SERVE_SERVE_SPEC_H

#include "base/arena.h"
#include "base/status.h"

struct serve_spec {
    char *deployment, *replica, *dir, *server, *token_file, *ca_file, *listen, *secret;
};

/** Text lives in the arena. @return INVALID with the place of what is wrong. */
weir_status serve_spec_load(const char *path, struct weir_arena *arena, struct serve_spec *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
