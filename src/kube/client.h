/**
 * Client of a Kubernetes API server: one question at a time, as JSON. What comes of faults that pass (a connection that broke,
 * 429, 5xx, 409 of what names no version, credentials that have been changed, an API server that is away while another is there) is tried again for a
 * bounded time, with pauses that grow and differ.
 *
 *     WEIR_TRY(weir_kube_open(&config, &kube, err));
 *     const struct weir_kube_call call = {.method = "GET", .path = "/api/v1/namespaces/a/pods/b"};
 *     WEIR_TRY(weir_kube_call(kube, &call, arena, &pod, err));
 *
 * All that changes something is asked so that asking twice changes it once: objects have names of ours, and ALREADY_EXISTS
 * says that an answer was lost. A client belongs to one thread at a time; only weir_kube_cancel may come from others.
 */
#ifndef WEIR_KUBE_CLIENT_H
#define WEIR_KUBE_CLIENT_H

#include "kube/config.h"

struct weir_kube;

/** @param config  Copied. No connection is made yet. */
weir_status weir_kube_open(const struct weir_kube_config *config, struct weir_kube **out,
                           struct weir_error *err) WEIR_MUST_CHECK;
/** NULL is accepted. */
void weir_kube_close(struct weir_kube *kube);

/** Make the call in progress, and each after it, end with CANCELLED. Any thread. */
void weir_kube_cancel(struct weir_kube *kube);

const struct weir_kube_config *weir_kube_config_of(const struct weir_kube *kube);

struct weir_kube_call {
    const char *method;
    const char *path;         /**< "/api/v1/nodes"; names in it are escaped (weir_kube_escape). */
    const char *query;        /**< "limit=500&…", escaped; NULL: none. */
    const json_t *body;       /**< NULL: none. */
    const char *content_type; /**< NULL: application/json. */
    int64_t timeout_ms;       /**< For all tries together; 0: 20 s. */
    /** 409 and 429 are answers as others are: they are not asked again. For what they say something of (bindings, evictions). */
    bool takes_no;
};

/** What the API server refused. Text lies in the arena of the call. */
struct weir_kube_refusal {
    int code;           /**< HTTP's; 0: it did not answer. */
    const char *reason; /**< "AlreadyExists"; "" where none is told. */
};

/**
 * Ask. @param out  A new reference; what is no JSON (logs) is a string. NULL: nobody wants it.
 * @param refusal  Set when an error is returned; or NULL.
 * @return NOT_FOUND, CONFLICT (409), DENIED (401, 403), INVALID (400, 405, 406, 415, 422), LIMIT (413) with the sentence of
 *         the API server; UNAVAILABLE if none answered in time, or all it said is to come later; CANCELLED.
 */
weir_status weir_kube_call(struct weir_kube *kube, const struct weir_kube_call *call,
                           struct weir_arena *arena, json_t **out,
                           struct weir_kube_refusal *refusal,
                           struct weir_error *err) WEIR_MUST_CHECK;

/** A stream of JSON values, one a line. */
struct weir_kube_stream {
    const char *path, *query;
    /** Called for each value, which it borrows. An error ends the stream with it. */
    weir_status (*on_value)(void *context, const json_t *value, struct weir_error *err);
    void *context;
    int64_t quiet_timeout_ms; /**< The connection is given up after so long without a byte. */
};

/**
 * Read a stream to its end. It is not tried again: the caller knows from where to go on.
 * @return WEIR_OK when the API server ended it; else as weir_kube_call.
 */
weir_status weir_kube_stream(struct weir_kube *kube, const struct weir_kube_stream *stream,
                             struct weir_kube_refusal *refusal,
                             struct weir_error *err) WEIR_MUST_CHECK;

/** Wait for the pause before the n-th try (n from 0): about 0.1 s, doubled each time, up to 10 s. @return False: cancelled. */
bool weir_kube_pause(struct weir_kube *kube, unsigned n);

/** Text as it may stand in a path or a query. In the arena. Pure. */
const char *weir_kube_escape(const char *text, struct weir_arena *arena);

/** What stands at a path of members ("spec.nodeName") of an object; NULL: nothing. Pure. */
json_t *weir_kube_at(const json_t *object, const char *path);

/** The same, if it is a string. */
const char *weir_kube_text(const json_t *object, const char *path);

/** The same; `otherwise` where there is none, or an empty one. */
const char *weir_kube_text_or(const json_t *object, const char *path, const char *otherwise);

/** Is it this text? What is not there is as "". */
bool weir_kube_is(const json_t *object, const char *path, const char *text);

/** The condition of that type in an object's status; NULL: there is none. Pure. */
const json_t *weir_kube_condition(const json_t *object, const char *type);

/** The same, if it holds (its status is "True"). */
const json_t *weir_kube_holds(const json_t *object, const char *type);

/** RFC 3339 ("2026-11-30T12:00:00Z") in milliseconds since 1970; 0: it is none. Pure. */
int64_t weir_kube_time_ms(const char *text);

#endif
