/**
 * Kinds of receivers: how a message about alerts is sent. A kind is a table (base/kind.h) with the
 * ops below.
 *
 * A message is an object {"id", "event", "time", "rule", "project", "server", "alerts": [{"id", "key",
 * "kind", "severity", "subject", "message", "state", "raised", "last", "count", "acknowledged_by",
 * "resolved"}]}; "event" is raised, escalated, repeated, resolved or test. docs/reference/alerts.md
 * tells what each kind makes of it.
 */
#ifndef WEIR_NOTIFY_RECEIVER_H
#define WEIR_NOTIFY_RECEIVER_H

#include "base/arena.h"
#include "base/kind.h"

#include <stdbool.h>
#include <stdint.h>

struct weir_poster;
struct weir_post;

extern const struct weir_registry weir_receiver_kinds;

#define WEIR_KIND(name) extern const struct weir_kind weir_receiver_##name;
#include "notify/receivers.def"
#undef WEIR_KIND

/** Where secrets lie in a receiver's options: the API never shows them (base/secret.h). */
#define WEIR_RECEIVER_SECRETS "secret token"

/** How often receivers that forget are told again, as long as an alert lasts. */
#define WEIR_RECEIVER_RESEND_MS ((int64_t)5 * 60000)

/** One try. */
struct weir_receiver_send {
    const char *delivery; /**< Its identifier. */
    const json_t *message;
    const void *options;
    struct weir_poster *poster; /**< Of this thread; it is stopped when the server ends. */
    struct weir_arena *arena;
    int64_t now_ms;
    int64_t timeout_ms;
};

struct weir_receiver_ops {
    /** Check what no table of options can say; NULL: nothing. */
    weir_status (*check)(const void *options, struct weir_error *err);
    /**
     * Send, and wait for the answer.
     * @return INVALID or UNSUPPORTED where a second try of the same would fail, too; any other error
     *         is tried again. All users who may read alerts see its text: it must not say how the receiver is
     *         reached (receiver_log may).
     */
    weir_status (*send)(const struct weir_receiver_send *send, struct weir_error *err);
    bool forgets; /**< It must be told again while an alert lasts, and when it is over. */
};

/** Read a receiver's options, and check them. @param where  "$.options". */
weir_status weir_receiver_read(const char *kind, const json_t *options, const char *where,
                               struct weir_arena *arena, struct weir_configured *out,
                               struct weir_error *err) WEIR_MUST_CHECK;

/** Does the kind of that name forget? Of one that there is not: no. */
bool weir_receiver_forgets(const char *kind);

/* ---- for the kinds -------------------------------------------------------------------------- */

/** The first line of a file with a secret, in the try's arena. @return IO, NOT_FOUND, LIMIT. */
weir_status receiver_read_secret(const struct weir_receiver_send *send, const char *path,
                                 char **out, struct weir_error *err) WEIR_MUST_CHECK;

/** What only readers of the server's log may see, at level debug. */
void receiver_log(const struct weir_receiver_send *send, const char *text);

/** POST (http/post.h): time and patience are the try's. */
weir_status receiver_post(const struct weir_receiver_send *send, struct weir_post *post,
                          struct weir_error *err) WEIR_MUST_CHECK;

/** What a message is about, in one line: "[critical] Node a has not been heard of …". */
char *receiver_title(const json_t *message, struct weir_arena *arena);

#endif
