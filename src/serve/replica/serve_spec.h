/**
 * Spec of a replica of a deployment (spec.json of a job of kind `serve`), beside what host/spec.h says:
 *
 *     {"deployment": "digits", "listen": "0.0.0.0:0", "secret": "…"}
 */
#ifndef WEIR_SERVE_SERVE_SPEC_H
#define WEIR_SERVE_SERVE_SPEC_H

#include "host/spec.h"

struct serve_spec {
    struct weir_host_spec host;
    char *deployment, *listen, *secret;
};

/** Text lives in the arena. @return INVALID with the place of what is wrong. */
weir_status serve_spec_load(const char *path, struct weir_arena *arena, struct serve_spec *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

#endif
