/**
 * Spec: what a replica is told at its start (spec.json), beside what host/spec.h says, as a struct.
 *
 *     {"ion": "building-security", "pipeline": "entrance", "replicas": 1,
 *      "source": {"kind": "directory", "path": "/frames"}
 *              | {"kind": "http", "listen": "127.0.0.1:0", "token": "…"},
 *      "sinks": [{"kind": "jsonl", "path": "/…/decisions.jsonl"}],
 *      "doors": [{"name": "door-1", "by": {"kind": "mqtt", …}}], "project": "default",
 *      "pictures": true, "health": {"window": 200, "interval_ms": 1000, "frozen_after_ms": 30000}}
 *
 * Its folder holds outbox, last good deployment, pictures; with "pictures": false it gets none. "health" is optional: values per window, the least
 * time between two values of one camera, and how long it shows the same picture before it counts as frozen.
 */
#ifndef WEIR_PREDICT_SPEC_H
#define WEIR_PREDICT_SPEC_H

#include "endpoint/door.h"
#include "host/spec.h"
#include "serve/executor.h"

#include <stddef.h>
#include <stdint.h>

#define PREDICT_LEFT_MAX 8

struct predict_spec {
    struct weir_host_spec host;
    char *ion, *pipeline, *job;
    char *project;                    /**< "default", unless it is said. */
    struct executor_options executor; /**< Not of the file: of flags, or the environment. */
    /** The ION is tried: this folder is its own, and what frames and ports belong to is left alone.
     *  NULL: it is in production. */
    char *sandbox_dir;
    /** Folders of replicas before it, whose decisions may not all have been handed in (left.h). */
    char *left[PREDICT_LEFT_MAX];
    size_t n_left;
    int64_t n_replicas, rank; /**< Rank: the number behind the last "-" of the replica's name. */
    struct weir_configured source;
    struct weir_configured sinks[WEIR_ENDPOINT_SINKS_MAX];
    size_t n_sinks;
    struct weir_door doors[WEIR_DOORS_MAX];
    size_t n_doors;
    /** Not of the file: folder of programs of doors; NULL: WEIR_DOOR_PROGRAMS. */
    char *door_programs;
    bool keeps_no_pictures; /**< Decisions have none. */
    int64_t health_window, health_interval_ms, health_frozen_after_ms;
    /** Options that are JSON lie in it, such as the cameras of a source of video. */
    json_t *document;
};

/** Read the file; text lives in the arena. @return INVALID with the place of what is wrong; there is nothing to free then. */
weir_status predict_spec_load(const char *path, struct weir_arena *arena, struct predict_spec *out,
                              struct weir_error *err) WEIR_MUST_CHECK;

/** What does not lie in the arena is freed. */
void predict_spec_fini(struct predict_spec *spec);

#endif
