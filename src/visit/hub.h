/**
 * Hub: the server's side of visits (visit/visit.h). It knows who is inside what, tells nodes which streams
 * are wanted of them, and joins the two sides of each.
 *
 *     weir_visits_begin    the caller may: a visit is there, without a stream
 *     weir_visits_enter    the person's command comes: a stream is wanted of the node
 *     weir_visits_wanted   the node is told
 *     weir_visits_arrive   the node comes, with the stream's secret; both are joined
 *
 * A visit is over with its first stream, and what it has beside that ends with it. One to which nobody came
 * within WEIR_VISITS_ARRIVE_MS is over too, as is a stream of which one side did not come. Nothing is kept
 * over a restart of the server: both sides see their connection end.
 *
 * Threads: every function may be called on any; one thread of the hub's own moves the bytes and calls back.
 */
#ifndef WEIR_VISIT_HUB_H
#define WEIR_VISIT_HUB_H

#include "base/arena.h"
#include "http/stream.h"
#include "visit/visit.h"

#include "base/view_struct.h"

#include "visit/visit_views.def"

#include "base/view_end.h"

#define WEIR_VISITS_OF_JOB_MAX  64
#define WEIR_VISITS_OF_NODE_MAX 256
#define WEIR_VISITS_MAX         1024
#define WEIR_VISITS_OF_WHO_MAX  128 /**< Of one person, who so never has all places. */
#define WEIR_VISIT_STREAMS_MAX  64  /**< Of one visit at a time. */
#define WEIR_VISITS_STREAMS_MAX 1024
#define WEIR_STREAMS_OF_WHO_MAX 256
#define WEIR_VISITS_ARRIVE_MS   20000
#define WEIR_VISITS_LOOK_MS     10000

struct weir_visits;

/** A visit, as it is asked for and listed. Text is borrowed; a copy is kept. */
struct weir_visit {
    const char *id; /**< Out. */
    enum weir_visit_kind kind;
    const char *job, *project;
    const char *task, *label; /**< Identifier, and "worker-0". */
    int64_t attempt;
    const char *node;
    const char *who;
    const char *session, *token; /**< By what they are known: identifiers; NULL: not by that. */
    const char *what;            /**< For the audit: "ls -l /". */
    int64_t since_ms;
    /** For the node: "command", "tty", "term", "rows", "cols", "port", "path" … */
    const json_t *order;
};

/** How a visit was. */
struct weir_visit_end {
    struct weir_visit visit;
    int64_t lasted_ms;
    bool has_exit; /**< Its program ended, and this is how. */
    int exit_status, exit_signal;
    const char *failed; /**< Why it did not work; NULL: it did, or its connection ended. */
};

/**
 * The owner's side. Called on the hub's thread; may use the database.
 *
 * ended  Once for each visit.
 * may    May they still be inside? Asked every WEIR_VISITS_LOOK_MS. If not, the visit ends.
 */
struct weir_visits_ops {
    void (*ended)(void *context, const struct weir_visit_end *end);
    bool (*may)(void *context, const struct weir_visit *visit);
};

weir_status weir_visits_create(const struct weir_visits_ops *ops, void *context,
                               struct weir_visits **out, struct weir_error *err) WEIR_MUST_CHECK;
/** All streams end; before the HTTP server stops. NULL is accepted, here and below. */
void weir_visits_stop(struct weir_visits *visits);
void weir_visits_destroy(struct weir_visits *visits);

/** @return LIMIT, saying of what. */
weir_status weir_visits_begin(struct weir_visits *visits, const struct weir_visit *visit,
                              char out_id[WEIR_VISIT_ID_BYTES],
                              struct weir_error *err) WEIR_MUST_CHECK;

/**
 * A side of a stream, for weir_http_response_upgrade with weir_visits_upgraded: in the arena, which must live
 * until the upgrade.
 */
struct weir_visit_seat;

/** The visit of this identifier, if it is this person's; its texts go to the arena. @return NOT_FOUND. */
weir_status weir_visits_get(struct weir_visits *visits, const char *id, const char *who,
                            struct weir_arena *arena, struct weir_visit *out,
                            struct weir_error *err) WEIR_MUST_CHECK;

/**
 * Somebody's command asks for a stream of their visit.
 * @param out_node  Whom to wake; in the arena.
 * @return NOT_FOUND: there is no such visit of theirs; LIMIT.
 */
weir_status weir_visits_enter(struct weir_visits *visits, const char *id, const char *who,
                              struct weir_arena *arena, struct weir_visit_seat **out_seat,
                              const char **out_node, struct weir_error *err) WEIR_MUST_CHECK;

/** The node comes to a stream. @return NOT_FOUND: no such stream is waited for, or it has another secret. */
weir_status weir_visits_arrive(struct weir_visits *visits, const char *id, int64_t stream,
                               const char *secret, struct weir_arena *arena,
                               struct weir_visit_seat **out_seat,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** weir_http_upgrade_fn; the context is the seat. */
void weir_visits_upgraded(void *seat, struct weir_http_upgraded *upgraded, int fd,
                          const void *extra, size_t extra_len);

/**
 * What is wanted of a node since it was told last: [{"id", "stream", "secret", "task", "attempt", "kind",
 * …order}]. A new reference; NULL: nothing.
 * @param serial  In: what it was told with then (-1: never). Out: to be told with this.
 */
json_t *weir_visits_wanted(struct weir_visits *visits, const char *node, int64_t *serial);

/** As people see it: the view weir_visit_seen; a new reference. */
json_t *weir_visit_json(const struct weir_visit *visit, const char *id);

/** Those of a job, as a list of the same; a new reference. */
json_t *weir_visits_list(struct weir_visits *visits, const char *job);

#endif
